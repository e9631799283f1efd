"""Apache Kafka's own integration tests, with the shim in the place of the broker that they start in their JVM.

The published test jars run unchanged. ``java/`` holds what is ours there: a runner on the JUnit launcher, and stand-ins
for the servers that Kafka's test harnesses construct, one of which runs ``kafka-shim serve`` with the test's own
properties on the directory that Kafka formatted. On the target ``kafka`` the same runner leaves the servers as they
are. On both, clusters are reduced to one broker, and a test counts if it passes on Kafka like that. What a test asks of
objects that only a broker's JVM has is not applicable, and the call is named.

``scan`` finds the tests in the jars, ``jvm_run`` runs them, ``lists/`` has the outcome of each test on each target with
the cause of each failure, and ``report`` compares a run with it.
"""
