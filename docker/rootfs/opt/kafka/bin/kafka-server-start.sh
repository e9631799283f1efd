#!/bin/sh
# kafka-server-start.sh [-daemon] FILE [--override NAME=VALUE]...: the broker with a properties file.
while [ "${1-}" = -daemon ] || [ "${1-}" = -loggc ]; do
    if [ "$1" = -daemon ]; then echo 'kafka-server-start.sh: -daemon is not possible here, start it with &' >&2; exit 1; fi
    shift
done
[ $# -gt 0 ] || { echo "USAGE: $0 [-daemon] server.properties [--override property=value]*" >&2; exit 1; }
file=$1
shift
# Each --override NAME=VALUE goes to the end as -o NAME=VALUE.
for word; do
    shift
    if [ "$word" = --override ]; then word=-o; fi
    set -- "$@" "$word"
done
exec /opt/kafka-shim/bin/python /opt/kafka-shim/entrypoint.py launch "$file" "$@"
