# Each target sets up what it needs.
PYTHON ?= python3
VENV := .venv
export KAFKA_SHIM_WERROR := 1

.PHONY: run build
build:
	$(VENV)/bin/python setup.py -q build_ext --inplace -j2
run: build
	$(VENV)/bin/python -m shim serve
