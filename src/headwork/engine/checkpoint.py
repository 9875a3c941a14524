"""Where a model's arrays come from: a file, a directory, a torch module or a mapping. Nothing in a file is executed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

from headwork.engine.arrays import Array
from headwork.errors import HeadworkError
from headwork.extras import needs

TORCH_FILES = (".pt", ".pth", ".bin")
WHOLE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")  # what a directory may hold
LARGEST_CONFIG = 1_000_000  # bytes
LARGEST_INDEX = 100_000_000  # a name and a file for every array of a very large model


@dataclass(frozen=True)
class Checkpoint:
    """Arrays by name, read one by one when asked for, and what is told about the model that they belong to."""

    source: str
    readers: Mapping[str, Callable[[], Any]]
    config: Mapping[str, Any] = field(default_factory=dict)
    module: Any = None

    def attention(self, prefix: str) -> Any:
        """The module that a layer's names belong to, where there are modules."""
        return self.module and self.module.get_submodule(prefix.rstrip("."))

    def array(self, name: str) -> Array:
        try:
            found = self.readers[name]()
            if hasattr(found, "detach"):
                found = found.detach().cpu()
                # NumPy knows no bfloat16 of its own, and a layer widens it anyway.
                found = (found.float() if str(found.dtype) == "torch.bfloat16" else found).numpy()
        except HeadworkError:
            raise
        except Exception as error:  # a type that NumPy has not, or a file that was damaged or replaced meanwhile
            raise HeadworkError(f"{self.source}: {short(name)} cannot be read: {short(error)}") from None
        return np.asarray(found)


def opened(source: str | PathLike[str] | Any) -> Checkpoint:
    """Whatever was given, as arrays by name."""
    if isinstance(source, str | PathLike):
        return from_path(Path(source))
    if hasattr(source, "state_dict"):
        config: Any = getattr(source, "config", None)
        told = config.to_dict() if hasattr(config, "to_dict") else {}
        return Checkpoint(type(source).__name__, readers(source.state_dict()), told, source)
    if isinstance(source, Mapping):
        return Checkpoint("the mapping", readers(source))
    raise HeadworkError(
        f"{type(source).__name__} holds no layer that can be read. Give a path, a torch module, or a mapping of names "
        "to arrays."
    )


def readers(arrays: Mapping[Any, Any]) -> dict[str, Callable[[], Any]]:
    return {str(name): partial(_same, array) for name, array in arrays.items() if hasattr(array, "shape")}


def _same(array: Any) -> Any:
    return array


def from_path(path: Path) -> Checkpoint:
    if path.is_dir():
        path = next((path / name for name in WHOLE if (path / name).is_file()), path)
        if path.is_dir():
            raise HeadworkError(f"{path} is a directory without any of {', '.join(WHOLE)}: give the file itself.")
    if not path.is_file():
        raise HeadworkError(f"there is no file '{path}'.")
    beside = path.parent / "config.json"
    config = read_json(beside, LARGEST_CONFIG) if beside.is_file() else {}
    if path.suffix == ".safetensors":
        return Checkpoint(str(path), from_safetensors(path), config)
    if path.name.endswith(".safetensors.index.json"):
        return Checkpoint(str(path), from_shards(path), config)
    if path.suffix in TORCH_FILES:
        return Checkpoint(str(path), from_torch(path), config)
    raise HeadworkError(
        f"{path} ends in '{path.suffix}'. Files that end in .safetensors, .safetensors.index.json, "
        f"{', '.join(TORCH_FILES)} are read."
    )


def from_safetensors(path: Path) -> dict[str, Callable[[], Any]]:
    """The file is mapped into memory; an array is read from it when it is asked for, and no other."""
    package = needs("safetensors")
    try:
        file = package.safe_open(path, framework="np")
        names = list(file.keys())
    except (package.SafetensorError, OSError) as error:
        raise HeadworkError(f"{path} is not a whole safetensors file: {short(error)}") from None
    return {name: partial(file.get_tensor, name) for name in names}


def from_shards(path: Path) -> dict[str, Callable[[], Any]]:
    """An index names the file of every array; only the files that are needed are opened."""
    places = read_json(path, LARGEST_INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
        raise HeadworkError(f"{path} has no 'weight_map' from names to files: it is not an index of shards.")
    if outside := next((place for place in places.values() if Path(place).name != place), None):
        raise HeadworkError(f"{path} points outside its directory, to {short(outside)!r}: that is not followed.")
    files: dict[str, dict[str, Callable[[], Any]]] = {}

    def read(name: str) -> Any:
        place = places[name]
        if place not in files:
            files[place] = from_safetensors(path.parent / place)
        if name not in files[place]:
            raise HeadworkError(f"{path} says that {place} holds {short(name)}, which it does not.")
        return files[place][name]()

    return {name: partial(read, name) for name in places}


def from_torch(path: Path) -> dict[str, Callable[[], Any]]:
    """A state dict, mapped into memory; a pickle that asks for more than arrays is refused, not run."""
    torch = needs("torch")
    try:
        # Files from before 2020 are no zip archives and cannot be mapped.
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path))
    except Exception as error:  # whatever a damaged or hostile file makes torch raise
        raise HeadworkError(f"{path} is not a torch file of arrays alone: {short(error)}") from None
    while isinstance(found, Mapping) and isinstance(inner := found.get("state_dict", found.get("model")), Mapping):
        found = inner  # a training checkpoint, with the model's arrays beside the optimizer's
    if not isinstance(found, Mapping):
        raise HeadworkError(f"{path} holds a {type(found).__name__}, not a state dict. Save model.state_dict().")
    return readers(found)


def read_json(path: Path, largest: int) -> dict[str, Any]:
    if path.stat().st_size > largest:
        raise HeadworkError(f"{path} has {path.stat().st_size:,} bytes; at most {largest:,} are read.")
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise HeadworkError(f"{path} is not JSON: {short(error)}") from None
    if not isinstance(found, dict):
        raise HeadworkError(f"{path} holds a {type(found).__name__} where a table belongs.")
    return found


def short(what: object) -> str:
    """One line of a message that somebody else's file may have a hand in."""
    line = " ".join(str(what).split())
    return line if len(line) <= 160 else f"{line[:159]}…"
