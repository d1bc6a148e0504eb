"""Compiles the kernels: `python -m engine.native.build`.

Without a compiler, or on another kind of processor, the engine computes with torch alone.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "src"
FLAGS = (
    "-O3",
    "-std=c++17",
    "-fPIC",
    "-pthread",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-tree-reassoc",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-maybe-uninitialized",
)
UNITS: dict[str, tuple[str, ...]] = {
    "avx2": ("-mavx2", "-mfma"),
    "vnni": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mfma"),
}
"""The instruction sets that the kernels are compiled for, with what the compiler calls them."""
PROCESSORS = ("x86_64", "AMD64")
SECONDS = 300
"""What a compilation may take on a slow machine."""


class BuildError(Exception):
    """The kernels could not be compiled."""


def library() -> Path:
    """Where the kernels of these sources are, once they are compiled."""
    told = hashlib.sha256(repr((FLAGS, UNITS)).encode())
    for path in sorted(SOURCES.iterdir()):
        told.update(path.name.encode() + path.read_bytes())
    return HERE / "compiled" / f"tandem-{told.hexdigest()[:16]}.so"


def usable(flags: Collection[str]) -> bool:
    """Whether they are compiled, and for a processor with these instruction sets (their names in
    /proc/cpuinfo). Loads nothing."""
    return {"avx2", "fma"} <= set(flags) and library().exists()


def build() -> Path:
    """Compile what is not compiled yet. Raises BuildError."""
    target = library()
    if target.exists():
        return target
    if platform.machine() not in PROCESSORS:
        raise BuildError(f"There are no kernels for {platform.machine()} processors.")
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise BuildError("There is no C++ compiler (Debian: apt-get install g++).")
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / target.name
        _compile(compiler, Path(folder), built)
        built.replace(target)
    for old in target.parent.glob("tandem-*.so"):
        if old != target:
            old.unlink()
    return target


def _compile(compiler: str, folder: Path, built: Path) -> None:
    jobs = {
        name: ("kernels.cpp", (*flags, f"-DTANDEM_ISA={name}")) for name, flags in UNITS.items()
    }
    jobs |= {"team": ("team.cpp", ()), "api": ("api.cpp", ())}
    running = []
    for name, (source, flags) in jobs.items():
        files = ("-c", str(SOURCES / source), "-o", str(folder / f"{name}.o"))
        command = [compiler, *FLAGS, *flags, *files]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    complaints = [_finish(process) for process in running]
    if any(process.returncode for process in running):
        raise BuildError("".join(complaints).strip() or "The compiler failed.")
    objects = [folder / f"{name}.o" for name in jobs]
    link = subprocess.Popen(
        [compiler, "-shared", "-pthread", *objects, "-o", built], stderr=subprocess.PIPE, text=True
    )
    complaint = _finish(link)
    if link.returncode:
        raise BuildError(complaint.strip() or "The linker failed.")


def _finish(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"The compiler took longer than {SECONDS} s."


def main() -> int:
    try:
        path = build()
    except BuildError as error:
        print(f"Without its own kernels the engine is several times slower. {error}")
        return 0
    print(f"The engine's kernels are in {path.relative_to(HERE.parent.parent)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
