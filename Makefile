# Each target sets up what it needs, quickly when nothing changed. PYTHON names the interpreter to build .venv with.
# `make help` prints the line above each target.
PYTHON ?=
SUITE := .venv/bin/python scripts/suite.py
export PYTHON

.PHONY: run test build lint bench compat soak spark-demo docs dist binary clean help
.DEFAULT_GOAL := build

#: start a broker on 127.0.0.1:9092; ARGS="--memory -o num.partitions=3" sets its options
run: build   ; @.venv/bin/python -m kafka_shim serve $(ARGS)
#: run the whole suite; ARGS=quick is for people at work, ARGS="lint unit" runs some layers
test:        ; @scripts/bootstrap test && $(SUITE) $(or $(ARGS),test)
#: make .venv and compile the extensions in place
build:       ; @scripts/bootstrap run
#: check the sources with ruff, mypy and cython-lint
lint:        ; @scripts/bootstrap test && $(SUITE) lint
#: measure the shim beside Apache Kafka on this machine; ARGS=--quick takes less time
bench:       ; @scripts/bootstrap java && .venv/bin/python -m bench $(ARGS)
#: compare every behaviour with Apache Kafka, and run other clients' own tests
compat:      ; @scripts/bootstrap compat && .venv/bin/python -m kafka_shim.compat --long --readme $(ARGS)$(if $(ARGS),, && .venv/bin/python -m kafka_shim.compat.upstream --long --findings \
	&& .venv/bin/python -m kafka_shim.compat.ecosystem --readme \
	&& .venv/bin/python -m kafka_shim.compat.upstream.apache_kafka --targets shim,kafka)
#: run the long forms of the tests: hundreds of kills, every fault, millions of records
soak:        ; @scripts/bootstrap compat && $(SUITE) soak
#: run a generator, a streaming job of Spark and an audit of what it wrote
spark-demo:  ; @scripts/bootstrap java && .venv/bin/python -m kafka_shim.spark.demo $(ARGS)
#: build the documentation site in build/site
docs:        ; @scripts/bootstrap docs && NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict $(ARGS)
#: make the source distribution and a wheel for each Python of this machine, in dist/
dist:        ; @scripts/bootstrap release && .venv/bin/python scripts/wheels.py $(ARGS)
#: make dist/kafka-shim, one executable for machines without Python
binary:      ; @scripts/bootstrap release && .venv/bin/python scripts/binary.py $(ARGS)
#: remove what was built and measured, but not .venv
clean:       ; rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
#: print this list
help:        ; @awk '/^#: /{text = substr($$0, 4)} /^[a-z-]+:/{split($$0, name, ":"); printf "make %-12s%s\n", name[1], text}' Makefile
