#!/usr/bin/env python3
"""Reads files written by this crate with Python's safetensors, and compares them with expected.json.

Usage: read_back.py FOLDER. The test `oracle` runs it. FOLDER/expected.json has two fields: "files"
maps each file name to its metadata and to the dtype, shape and sha256 of each tensor, and "sharded"
is the number of tensors in the sharded model. Prints the number of files compared.
"""

import hashlib
import json
import os
import sys

import safetensors


def compare(path, expected):
    with open(path, "rb") as file:
        read = dict(safetensors.deserialize(file.read()))
    found = {
        name: {
            "dtype": tensor["dtype"],
            "shape": tensor["shape"],
            "sha256": hashlib.sha256(bytes(tensor["data"])).hexdigest(),
        }
        for name, tensor in read.items()
    }
    assert found == expected["tensors"], path
    with safetensors.safe_open(path, "numpy") as opened:
        assert opened.metadata() == expected["metadata"], path
        assert set(opened.keys()) == set(found), path
    return found


def main(folder):
    with open(os.path.join(folder, "expected.json")) as file:
        expected = json.load(file)
    with open(os.path.join(folder, "model.safetensors.index.json")) as file:
        index = json.load(file)
    total = 0
    for name, described in expected["files"].items():
        found = compare(os.path.join(folder, name), described)
        if name in index["weight_map"].values():
            assert {t for t, shard in index["weight_map"].items() if shard == name} == set(found)
            with open(os.path.join(folder, name), "rb") as file:
                total += sum(len(t["data"]) for _, t in safetensors.deserialize(file.read()))
    assert index["metadata"]["total_size"] == total
    assert len(index["weight_map"]) == expected["sharded"]
    print(len(expected["files"]))


main(sys.argv[1])
