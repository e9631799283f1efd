"""TLS settings of a listener: stores, versions and suites, and from a certificate's name to a principal."""
