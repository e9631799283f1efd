#!/bin/sh
# zookeeper-server-start.sh FILE: start scripts from before KRaft run it beside the broker, which needs none.
exec /opt/kafka-shim/bin/python /opt/kafka-shim/entrypoint.py zookeeper "$@"
