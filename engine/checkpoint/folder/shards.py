"""The weight files of a folder: one safetensors file, or an index and its shards."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from engine.checkpoint.files import is_there, names_in, read_object
from engine.checkpoint.folder.safetensors import read_header
from engine.checkpoint.stored import TensorInfo
from engine.errors import CheckpointError, Part, Said
from engine.errors import gettext_noop as _

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
MAX_INDEX = 100_000_000
MAX_SHARDS = 10_000


def weight_files(folder: Path) -> list[Path]:
    """In a stable order; raises CheckpointError when there is none that can be read."""
    index = folder / INDEX
    if is_there(index):
        shards = _shards(folder, _weight_map(index))
        stray = folder / SINGLE
        if is_there(stray) and stray not in shards:
            raise _wrong(
                index, _("the folder also holds %(file)s, which it does not list"), file=SINGLE
            )
        return shards
    if is_there(folder / SINGLE):
        return [folder / SINGLE]
    raise _nothing_readable(folder)


def stored_tensors(folder: Path) -> dict[str, TensorInfo]:
    """Every tensor of the folder by its name there; index and shards agree both ways."""
    index = folder / INDEX
    files = weight_files(folder)
    if not is_there(index):
        return read_header(files[0])
    places = _weight_map(index)
    tensors: dict[str, TensorInfo] = {}
    for file in files:
        for name, info in read_header(file).items():
            _check_indexed(index, places, name, file)
            tensors[name] = info
    for name, file_name in places.items():
        if name not in tensors:
            raise _wrong(
                index,
                _("tensor %(tensor)r should be in %(shard)s, but is not"),
                tensor=name,
                shard=file_name,
            )
    return tensors


def _check_indexed(index: Path, places: Mapping[str, str], name: str, file: Path) -> None:
    """Each tensor lies in the one shard that the index names, so none can hide another."""
    place = places.get(name)
    if place is None:
        raise _wrong(
            index,
            _("tensor %(tensor)r is in %(shard)s, but not in the index"),
            tensor=name,
            shard=file.name,
        )
    if place != file.name:
        raise _wrong(
            index,
            _("tensor %(tensor)r is in %(shard)s, but the index says %(place)s"),
            tensor=name,
            shard=file.name,
            place=place,
        )


def _weight_map(index: Path) -> dict[str, str]:
    places: Any = read_object(index, MAX_INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise _wrong(index, _("its weight_map is missing"))
    for name, file in places.items():
        if not isinstance(file, str) or PurePosixPath(file).name != file or "\0" in file:
            raise _wrong(
                index,
                _("tensor %(tensor)r is said to be in %(shard)s, which is no file name"),
                tensor=name,
                shard=repr(file)[:80],
            )
        if not file.endswith(".safetensors"):
            raise _wrong(
                index,
                _("tensor %(tensor)r is said to be in %(shard)s, which is not safetensors"),
                tensor=name,
                shard=file[:80],
            )
    return places


def _shards(folder: Path, places: Mapping[str, str]) -> list[Path]:
    names = sorted(set(places.values()))
    if len(names) > MAX_SHARDS:
        raise _wrong(folder / INDEX, _("%(count)s shards cannot be real"), count=len(names))
    for name in names:
        if not is_there(folder / name):
            raise _wrong(folder / INDEX, _("shard %(shard)s is missing"), shard=name)
    return [folder / name for name in names]


def _nothing_readable(folder: Path) -> CheckpointError:
    for name in names_in(folder):
        if Path(name).suffix in PICKLES:
            return pickle_refusal(folder / name)
    return CheckpointError(
        _("%(folder)s holds neither %(single)s nor %(index)s."),
        folder=str(folder),
        single=SINGLE,
        index=INDEX,
    )


def pickle_refusal(file: Path) -> CheckpointError:
    return CheckpointError(
        _(
            "%(file)s is a pickle, which can run any code when it is opened, so Tandem never "
            "does; convert the model to safetensors (load it in transformers and call "
            "save_pretrained)."
        ),
        file=file.name,
    )


def _wrong(index: Path, problem: str, /, **parts: Part) -> CheckpointError:
    return CheckpointError(
        _("%(index)s: %(problem)s."), index=index.name, problem=Said(problem, parts)
    )
