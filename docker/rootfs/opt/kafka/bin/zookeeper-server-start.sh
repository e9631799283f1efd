#!/bin/sh
# Start scripts from before KRaft start this beside the broker, which needs none.
echo 'kafka-shim: no ZooKeeper is needed, none is started'
