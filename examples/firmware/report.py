"""Compares an image's output with the golden probabilities and prints the memory that it needs.

Usage: size -A IMAGE | python3 report.py (flash | spi) OUTPUT
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
MODEL = os.path.join(ROOT, "tests/oracle/files/silero-vad.safetensors")
SOUND = os.path.join(ROOT, "tests/golden/speech_16k_s16le.pcm")
GOLDEN = os.path.join(ROOT, "tests/golden/silero_vad.json")
TOLERANCE = 1e-4


def main():
    image, output = sys.argv[1:]
    with open(GOLDEN) as file:
        golden = json.load(file)["probabilities"]
    with open(output) as file:
        lines = file.read().splitlines()
    found = [float(line) for line in lines[: len(golden)]]
    if len(found) != len(golden):
        sys.exit(f"{len(found)} probabilities, expected {len(golden)}")
    largest = max(abs(a - b) for a, b in zip(found, golden))
    if not largest <= TOLERANCE:
        sys.exit(f"a probability differs by {largest} from the other engine's")
    print(f"{len(found)} probabilities, largest difference from another engine {largest:.1e}")

    # Each line has a section's name, size and address.
    fields = [line.split() for line in sys.stdin]
    sizes = {line[0]: int(line[1]) for line in fields if len(line) == 3 and line[1].isdigit()}
    files = os.path.getsize(SOUND) + (os.path.getsize(MODEL) if image == "flash" else 0)
    flash = sum(sizes.get(name, 0) for name in (".vector_table", ".text", ".rodata", ".data"))
    excluded = "the sound and the model" if image == "flash" else "the sound"
    print(f"flash: {flash - files} bytes, without {excluded}")
    print(f"static RAM: {sum(sizes.get(name, 0) for name in ('.data', '.bss', '.uninit'))} bytes")
    print("\n".join(lines[len(golden) :]))


main()
