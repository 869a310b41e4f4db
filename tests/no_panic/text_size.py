#!/usr/bin/env python3
"""Compares the images' sizes (code and constants) with text_size.tsv. Fails if one grew by more
than 5 %.

Usage: python3 tests/no_panic/text_size.py FOLDER [--write]

FOLDER holds the images for thumbv7em-none-eabihf at opt-level "s". With --write, text_size.tsv is
written instead. Needs `size` from binutils.
"""

import os
import subprocess
import sys

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "text_size.tsv")
IMAGES = ["no-panic", "small", "scan"]


def text_size(path):
    out = subprocess.run(["size", path], check=True, capture_output=True, text=True).stdout
    # A heading line, then a line of numbers, text first.
    return int(out.splitlines()[1].split()[0])


def main():
    folder = sys.argv[1]
    sizes = {image: text_size(os.path.join(folder, image)) for image in IMAGES}
    if sys.argv[2:] == ["--write"]:
        with open(FILE, "w") as file:
            file.writelines(f"{image}\t{size}\n" for image, size in sizes.items())
        return
    with open(FILE) as file:
        committed = dict(line.split("\t") for line in file.read().splitlines())
    grown = []
    for image, size in sizes.items():
        before = int(committed[image])
        print(f"{image}\t{size} bytes, {before} committed")
        if size * 20 > before * 21:
            grown.append(image)
    if grown:
        sys.exit(f"grew by more than 5 %: {', '.join(grown)}")


main()
