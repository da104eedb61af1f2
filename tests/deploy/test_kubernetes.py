"""The Kubernetes folder: what the API takes, and that its commands make a cluster out of its secrets."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.errors import AuthenticationFailed
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.wire.keys import Keys, keygen
from tests.cluster.programs import evaluate, expected, total
from tests.waiting import until

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl puts the folder together")
Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """What `kubectl apply --kustomize` would send."""
    folder = tmp_path_factory.mktemp("deploy") / "kubernetes"
    shutil.copytree(ROOT / "deploy" / "kubernetes", folder)
    keygen(folder / "keys")
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def _one(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    return next(m for m in manifests if m["kind"] == kind and m["metadata"]["name"].startswith(name))


@pytest.mark.parametrize("version", ["1.29", "1.34"])
def test_the_api_takes_all_of_it(manifests, version):
    validate = pytest.importorskip("kubernetes_validate").validate
    for manifest in manifests:
        validate(manifest, version, strict=True)
    assert sorted(m["kind"] for m in manifests) == [
        "Deployment", "Secret", "Secret", "Secret", "Service", "Service", "StatefulSet"
    ]  # fmt: skip


def test_services_and_selectors_meet_pods(manifests):
    for kind, name in (("Deployment", "spartan-ng-master"), ("StatefulSet", "spartan-ng-worker")):
        spec = _one(manifests, kind, name)["spec"]
        labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
        service = _one(manifests, "Service", name)["spec"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()
        assert service["selector"].items() <= labels.items()
        (container,) = pod["containers"]
        ports = {p["name"]: p["containerPort"] for p in container["ports"]}
        for port in service["ports"]:
            assert ports[port["targetPort"]] == port["port"]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["tcpSocket"]["port"] in ports
        assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}


def test_each_role_has_the_secrets_that_it_needs_and_no_others(manifests):
    files = {name: set(_one(manifests, "Secret", f"spartan-ng-{name}")["data"]) for name in ROLES}
    assert files == ROLES
    assert not any(m.get("kind") == "ConfigMap" for m in manifests)


ROLES = {
    "master": {"server.key", "server.key_secret", "worker.key", "client.key", "admin.key"},
    "worker": {"server.key", "worker.key_secret"},
    "client": {"server.key", "client.key_secret"},
}


def _mount(at: Path, manifests: list[Manifest], volume: Manifest) -> Path:
    """A volume of a secret as the kubelet makes it: links to files in a folder with a time for a name."""
    secret = _one(manifests, "Secret", volume["secret"]["secretName"])["data"]
    hidden = at / "..2026_01_01"
    hidden.mkdir(parents=True)
    (at / "..data").symlink_to(hidden.name)
    for item in volume["secret"].get("items", [{"key": k, "path": k} for k in secret]):
        path = hidden / item["path"]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(base64.b64decode(secret[item["key"]]))
        path.chmod(volume["secret"]["defaultMode"])
        top = item["path"].partition("/")[0]
        if not (at / top).is_symlink():
            (at / top).symlink_to(f"..data/{top}")
    return at


@contextmanager
def _container(folder: Path, manifests: list[Manifest], kind: str, told: dict[str, str]) -> Iterator[int]:
    """A pod's container as a process, with some words of its command replaced; the port that it serves at."""
    name = "spartan-ng-master" if kind == "Deployment" else "spartan-ng-worker"
    pod = _one(manifests, kind, name)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    port = container["ports"][0]["containerPort"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    told = {"$(POD_IP)": "127.0.0.1", "$(CORES)": "1", str(port): str(free), **told}
    words = container["args"]
    for before, after in told.items():
        words = [word.replace(before, after) for word in words]
    assert "$(" not in "".join(words)
    keys = next(v for v in pod["volumes"] if "secret" in v)
    home = folder / name
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "SECRET": str(_mount(home / "secret", manifests, keys)),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    with subprocess.Popen(["/bin/sh", ROOT / "deploy" / "start", *words], env=environment) as process:
        try:
            until(lambda: _probe(free) or process.poll() is not None)
            assert process.poll() is None
            yield free
        finally:
            process.terminate()
            process.wait()


def _probe(port: int) -> bool:
    """What the kubelet does for `tcpSocket`."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_its_commands_make_a_cluster_with_its_secrets(manifests, tmp_path):
    (tmp_path / "spartan-ng").write_text(f'#!/bin/sh\nexec {sys.executable} -m spartan_ng.cli "$@"\n')
    (tmp_path / "spartan-ng").chmod(0o755)
    client = tmp_path / "client"
    client.mkdir(mode=0o700)
    for name, text in _one(manifests, "Secret", "spartan-ng-client")["data"].items():
        (client / name).write_bytes(base64.b64decode(text))
        (client / name).chmod(0o600)
    with _container(tmp_path, manifests, "Deployment", {}) as port:
        address = f"tcp://127.0.0.1:{port}"
        service = {"tcp://spartan-ng-master:7077": address}
        with _container(tmp_path, manifests, "StatefulSet", service) as tiles:
            for _ in range(20):  # the kubelet never tires
                assert _probe(port)
                assert _probe(tiles)
            backend = ClusterBackend.connect(address, client)
            x = build.constant(numpy.arange(6e5).reshape(-1, 3))
            assert evaluate(Session(backend), total(x)) == expected(x)
            (member,) = backend.status().members.members
            assert member.address == f"tcp://127.0.0.1:{tiles}"
            backend.close()
            with pytest.raises(AuthenticationFailed):
                Keys.load(client, "worker")
