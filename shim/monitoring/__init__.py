"""What an operator sees of a running broker: metrics and health over HTTP. Loaded only when it is asked for."""

# How an address of `kafka.shim.http.listener` begins that is served by TLS, and the name of that listener: the options
# `listener.name.http.ssl.*` are its own.
HTTPS = "https://"
HTTP_NAME = "HTTP"
