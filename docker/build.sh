#!/usr/bin/env bash
# docker/build.sh [shim] [kafka]: builds the image of the shim, that of Apache Kafka from its released jars, or both.
#
# Prints one line each on stdout, `shim IMAGE` and `kafka IMAGE`. IMAGE is tagged by the content of what it is made of, so
# nothing is built twice; `latest` moves along. Both stand on python:3.12-slim, or, where no image registry can be reached,
# on a Debian that debootstrap makes (root). Needs a Docker engine and the project's .venv.
#
#   KAFKA_SHIM_BASE_IMAGE   another base: Debian with python3 >= 3.11
set -euo pipefail
cd "$(dirname "$0")/.."
cache=.cache/docker
python=.venv/bin/python
registry_base=python:3.12-slim
suite=bookworm            # its python3 is 3.11
export DOCKER_BUILDKIT=${DOCKER_BUILDKIT:-0}

say() { printf '%s\n' "$*" >&2; }
fail() { say "cannot build: $*"; exit 1; }
exists() { docker image inspect "$1" >/dev/null 2>&1; }

# digest WORD PATH...: one word for the content of the files, and for WORD.
digest() {
    local word=$1
    shift
    { printf '%s\n' "$word"; find "$@" -type f ! -name '*.so' ! -name '*.pyc' ! -path '*/tests/*' -print0 | sort -z | xargs -0 sha256sum; } |
        sha256sum | cut -c 1-12
}

# run_quietly WHAT COMMAND...: the output is shown when it fails, and how long it took.
run_quietly() {
    local what=$1 began=$SECONDS log
    shift
    log=$(mktemp)
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        fail "$what"
    fi
    rm -f "$log"
    say "$what: $((SECONDS - began)) s"
}

# build KIND REPOSITORY TAG ARGUMENTS...: one docker build; the host's network serves where containers have none.
build() {
    local kind=$1 repository=$2 tag=$3
    shift 3
    run_quietly "building $repository:$tag" docker build -q --network host --label "kafka-shim.image=$kind" \
        -t "$repository:$tag" -t "$repository:latest" "$@"
    # Those of yesterday that nothing uses, and their build stages.
    docker image prune -a -f --filter "label=kafka-shim.image=$kind" --filter until=24h >/dev/null
}

# Sets base, and is_local_base when it was made here.
find_base() {
    is_local_base=
    base=${KAFKA_SHIM_BASE_IMAGE:-}
    [ -z "$base" ] || return 0
    base=$registry_base
    if exists "$base" || timeout 300 docker pull -q "$base" >/dev/null 2>&1; then return; fi
    is_local_base=1
    base=kafka-shim-base:$suite
    exists "$base" && return
    say "$registry_base cannot be pulled: making a base with debootstrap"
    command -v debootstrap >/dev/null || fail "debootstrap is missing; on Debian: apt-get install debootstrap"
    [ "$(id -u)" = 0 ] || fail "debootstrap needs root"
    local root
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
    run_quietly "debootstrap of $suite" debootstrap --variant=minbase --include=python3,ca-certificates "$suite" "$root"
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* "$root"/usr/share/man/* \
        "$root"/usr/share/locale/*
    tar -C "$root" -c . | docker import - "$base" >/dev/null
    rm -rf "$root"
    trap - EXIT
}

# The wheels of what the image needs, for its Python and not this machine's.
collect_wheels() {
    local machine
    machine=$(uname -m)
    rm -rf "$cache/wheelhouse"
    mkdir -p "$cache/wheelhouse"
    { "$python" docker/requirements.py build; "$python" docker/requirements.py run; } > "$cache/requirements.txt"
    run_quietly "collecting Python packages" "$python" -m pip download -q -d "$cache/wheelhouse" -r "$cache/requirements.txt" \
        --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 --abi abi3 --abi none \
        --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine"
}

build_shim() {
    local tag version
    tag=$(digest "$base" .dockerignore LICENSE NOTICE README.md pyproject.toml setup.py cext/*.p* cext/*.h cext/*_native.c shim docker/Dockerfile docker/*.py docker/rootfs)
    if ! exists "kafka-shim:$tag"; then
        local arguments=()
        if [ -n "$is_local_base" ]; then
            collect_wheels
            arguments=(--build-arg "BUILD_PACKAGES=gcc libc6-dev python3-dev python3-venv" --build-arg PIP_NO_INDEX=1)
        else
            rm -rf "$cache/wheelhouse"
        fi
        version=$("$python" -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
        build shim kafka-shim "$tag" -f docker/Dockerfile --label "org.opencontainers.image.version=$version" --build-arg "BASE_IMAGE=$base" "${arguments[@]}" .
    fi
    echo "shim kafka-shim:$tag"
}

# Everything that the JDK's jmods hold of what Kafka uses, without the compiler, the debugger and windows.
MODULES=java.base,java.compiler,java.desktop,java.instrument,java.logging,java.management,java.management.rmi,java.naming,java.net.http
MODULES+=,java.rmi,java.scripting,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.charsets,jdk.crypto.ec
MODULES+=,jdk.management,jdk.management.agent,jdk.naming.dns,jdk.net,jdk.security.auth,jdk.security.jgss,jdk.unsupported,jdk.zipfs

build_kafka() {
    local version libs tag stage=$cache/reference-kafka
    version=$("$python" -c 'from kafka_shim.targets.kafka_jars import KAFKA_VERSION; print(KAFKA_VERSION)')
    tag=$version-$(digest "$base $MODULES" docker/reference-kafka targets/kafka_jars.py targets/jvm.py)
    if ! exists "kafka-shim-reference-kafka:$tag"; then
        libs=$("$python" -m kafka_shim.targets.kafka_jars)
        rm -rf "$stage"
        mkdir -p "$stage/bin"
        command -v jlink >/dev/null || fail "jlink of a JDK 17 is missing; on Debian: apt-get install openjdk-17-jdk-headless"
        run_quietly "a Java runtime by jlink" jlink --add-modules "$MODULES" --strip-debug --no-header-files --no-man-pages --output "$stage/jre"
        # The archive of the JDK's own classes: a quicker start of every JVM.
        "$stage/jre/bin/java" -Xshare:dump >/dev/null 2>&1
        cp -r "$libs" "$stage/libs"
        cp docker/reference-kafka/{run,server.properties,log4j2.properties,Dockerfile} "$stage/"
        cp docker/reference-kafka/kafka-run-class.sh "$stage/bin/"
        local name main_class
        "$python" -c 'from kafka_shim.targets.jvm import TOOLS; print(*(f"{a} {b}" for a, b in TOOLS.items()), sep="\n")' |
            while read -r name main_class; do
                # shellcheck disable=SC2016
                printf '#!/usr/bin/env bash\nexec kafka-run-class.sh %s "$@"\n' "$main_class" > "$stage/bin/$name.sh"
            done
        chmod 755 "$stage"/bin/*.sh "$stage/run"
        build kafka kafka-shim-reference-kafka "$tag" --build-arg "BASE_IMAGE=$base" "$stage"
        rm -rf "$stage"
    fi
    echo "kafka kafka-shim-reference-kafka:$tag"
}

docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || fail "no Docker engine answers"
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
find_base
[ $# -gt 0 ] || set -- shim kafka
for part; do
    case $part in
        shim) build_shim ;;
        kafka) build_kafka ;;
        *) fail "no image is called $part: shim or kafka" ;;
    esac
done
