"""What an operator sees of a running broker: metrics and health over HTTP. Loaded only when it is asked for."""
