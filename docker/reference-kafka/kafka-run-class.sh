#!/usr/bin/env bash
# kafka-run-class.sh CLASS ARGUMENTS: a main class of Kafka's, with the JVM options of the usual variables.
log4j=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/etc/kafka/docker/log4j2.properties}
# The variables hold several words each.
# shellcheck disable=SC2086
exec java ${KAFKA_HEAP_OPTS:--Xmx256M} ${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseG1GC} $log4j ${KAFKA_JMX_OPTS:-} ${KAFKA_OPTS:-} \
    -cp '/opt/kafka/libs/*' "$@"
