# Each target sets up what it needs, quickly when nothing changed. PYTHON names the interpreter to build .venv with.
PYTHON ?=
SUITE := .venv/bin/python scripts/suite.py
export PYTHON

.PHONY: run build test lint bench compat soak spark-demo docs dist binary clean
.DEFAULT_GOAL := build

build:       ; @scripts/bootstrap run
run: build   ; @.venv/bin/python -m kafka_shim serve $(ARGS)
test:        ; @scripts/bootstrap test && $(SUITE) $(or $(ARGS),test)
lint:        ; @scripts/bootstrap test && $(SUITE) lint
bench:       ; @scripts/bootstrap java && .venv/bin/python -m bench $(ARGS)
compat:      ; @scripts/bootstrap compat && .venv/bin/python -m kafka_shim.compat --long --readme $(ARGS)$(if $(ARGS),, && .venv/bin/python -m kafka_shim.compat.upstream --long --findings \
	&& .venv/bin/python -m kafka_shim.compat.ecosystem --readme \
	&& .venv/bin/python -m kafka_shim.compat.upstream.apache_kafka --targets shim,kafka)
soak:        ; @scripts/bootstrap compat && $(SUITE) soak
spark-demo:  ; @scripts/bootstrap java && .venv/bin/python -m kafka_shim.spark.demo $(ARGS)
docs:        ; @scripts/bootstrap docs && NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict $(ARGS)
dist:        ; @scripts/bootstrap release && .venv/bin/python scripts/wheels.py $(ARGS)
binary:      ; @scripts/bootstrap release && .venv/bin/python scripts/binary.py $(ARGS)
clean:       ; rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
