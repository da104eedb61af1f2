"""`spartan-ng run script.py` is `python script.py`: all that a script sees of itself, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spartan_ng.system import processes
from spartan_ng_command import script_alone

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
SEEN = """
import sys, threading, __main__
print(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__, sys.flags.optimize)
print(sorted(set(dir()) - {"__annotations__"}), vars(__main__) is globals(), type(__loader__).__name__)
print(threading.active_count(), sys.exc_info(), __loader__.path, sys._getframe().f_code.co_filename)
def f(a: int): ...
print(f.__annotations__)
"""
SCRIPTS = {
    "seen": SEEN,
    "error": "def f():\n    return {}['key']\n\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    f()\n",
    "syntax": "print(1)\nx = (\n",
    "code": "import sys; print(1); sys.exit(7)",
    "message": "raise SystemExit('gone')",
    "killed": "import os, signal; print(1, flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n",
    "handled": "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    print(1)\n"
    "except KeyboardInterrupt:\n    print(2)\n",
    "hooked": "import sys, traceback\n"
    "sys.excepthook = lambda kind, error, trace: print(kind, error, len(traceback.extract_tb(trace)))\n"
    "raise ValueError(3)\n",
    "late": "import atexit, sys, threading\natexit.register(print, 'last')\n"
    "threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()\n"
    "class C:\n    def __del__(self): print('gone')\nc = C()\nassert False, 'why'\n",
    "closed": "import os\nraise BrokenPipeError(32, 'of its own')\n",
    "ended": "raise EOFError",
    "spawned": "import multiprocessing, sys\ndef f(x): return x + 1\n"
    "if __name__ == '__main__':\n"
    "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(f, [1, 2]))\n",
    "pickled": "import pickle\nclass C: ...\nprint(type(pickle.loads(pickle.dumps(C()))) is C)\n",
    "sourced": "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))\n",
    "warned": "import warnings\nwarnings.warn('look')\n",
}
BECOMING = """
import os, sys
def become(python, command):
    print(*({name.partition(".")[0] for name in sys.modules} & {"numpy", "click", "spartan_ng"}), command[1:])
    sys.exit()
os.execv = become
import spartan_ng_command
spartan_ng_command.main()
"""
WAYS = {
    "by itself": ["-m", "spartan_ng_command", "run"],
    "by click": ["-m", "spartan_ng.cli", "run", "--"],
    "as numpy": ["-m", "spartan_ng_command", "run", "--as-numpy"],
}


def ended(folder: Path, *command: str) -> tuple[int, str, str]:
    """How a process ends that runs in a folder, and what it says."""
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_as_under_python(tmp_path, name, way):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "script.py").write_text(SCRIPTS[name])
    (tmp_path / "link.py").symlink_to(folder / "script.py")
    for script in ("link.py", "elsewhere/script.py"):
        words = [script, "-n", "2", "--help"]
        assert ended(tmp_path, *WAYS[way], *words) == ended(tmp_path, *words)


ODD_NAMES = ["-w.py", "--help", "-c", "a b.py", "\u00fc.py"]


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("way", [*WAYS, "by click, on a worker", "by click, as numpy"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_that_look_like_options(tmp_path, name, way):
    (tmp_path / name).write_text("import sys; print(sys.argv, __file__); sys.exit(3)")
    more = {"by click, on a worker": ["-n", "1"], "by click, as numpy": ["--as-numpy"]}
    words = [*WAYS["by click"][:-1], *more[way], "--"] if way in more else WAYS[way]
    if words[-1] == "run" and name.startswith("-"):
        words = [*words, "--"]
    expected = (3, f"{[name, '-n', '2']} {tmp_path / name}\n", "")
    assert ended(tmp_path, *words, name, "-n", "2") == expected


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("safe", ["", "1"])
@pytest.mark.parametrize("way", WAYS)
def test_folders_and_zip_files_are_as_under_python(tmp_path, monkeypatch, way, safe):
    """A script's folder is not looked into where Python is told so; an application's file always is."""
    monkeypatch.setitem(ENVIRONMENT, "PYTHONSAFEPATH", safe)
    seen = SEEN.replace("__spec__", "__spec__ and __spec__.name") + "import beside\nprint(beside.x)\n"
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as file:
        file.writestr("__main__.py", seen)
        file.writestr("beside.py", "x = 7")
    (tmp_path / "script.py").write_text(seen)
    (tmp_path / "beside.py").write_text("x = 8")
    for script in ("app.pyz", "script.py"):
        theirs, ours = ended(tmp_path, script), ended(tmp_path, *WAYS[way], script)
        assert ours[:2] == theirs[:2]
        assert ours[2].splitlines()[-1:] == theirs[2].splitlines()[-1:]


@pytest.mark.parametrize("system", ["posix", "nt"])
def test_where_no_process_becomes_another(system, monkeypatch):
    """The script is a child there, and its exit code the command's."""
    became = []

    def become(*given):
        became.append(given)
        raise SystemExit(7)

    monkeypatch.setattr(os, "name", system)
    monkeypatch.setattr(os, "execve", become)
    with pytest.raises(SystemExit) as ended_with:
        processes.run_instead(
            [sys.executable, "-c", "import os, sys; sys.exit(int(os.environ['X']))"], {"X": "7"}
        )
    assert ended_with.value.code == 7
    assert len(became) == (system == "posix")


def test_nothing_is_imported_before_a_script(tmp_path):
    """The longest part of a short program; and what it sets in its environment is read by libraries then."""
    (tmp_path / "script.py").touch()
    code, said, wrong = ended(tmp_path, "-c", BECOMING, "run", "script.py", "7")
    assert (code, said, wrong) == (0, "['--', 'script.py', '7']\n", "")


MORE = ["run -n 2 script.py", "run none.py", "run -- script.py", "run", "run .", ""]


@pytest.mark.parametrize("words", MORE)
def test_all_else_is_the_packages(tmp_path, monkeypatch, words):
    (tmp_path / "script.py").touch()
    monkeypatch.chdir(tmp_path)
    assert script_alone(words.split()) is None
    assert script_alone(["run", "script.py", "-n"]) == [sys.executable, "--", "script.py", "-n"]
