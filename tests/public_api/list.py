#!/usr/bin/env python3
"""Lists the crate's public interface, from rustdoc's JSON, and compares it with `interface.txt`.

    list.py             prints the differences and exits 1 if there are any
    list.py --write     writes `interface.txt`

It also checks that every public function of the core is named in the probe
`tests/no_panic/src/every_function.rs`, which links only if none of them can panic. Functions of the
layers `alloc`, `std` and `mmap` are exempt as layers, not one by one.

Needs a nightly toolchain, for the JSON. The layer of an item is the first set of features that has it.
"""

import difflib
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
SNAPSHOT = os.path.join(HERE, "interface.txt")
PROBE = os.path.join(ROOT, "tests", "no_panic", "src", "every_function.rs")
LAYERS = {
    "core": ["--no-default-features"],
    "alloc": ["--no-default-features", "--features", "alloc"],
    "std": ["--no-default-features", "--features", "std"],
    "mmap": ["--no-default-features", "--features", "mmap"],
}
AUTO = {"Send", "Sync", "Unpin", "Freeze", "UnwindSafe", "RefUnwindSafe"}


def document(features):
    target = os.path.join(ROOT, "target", "public_api")
    flags = "-Zunstable-options --output-format json --cap-lints allow"
    environment = dict(os.environ, RUSTDOCFLAGS=flags)
    command = ["cargo", "+nightly", "doc", "-q", "--no-deps", "--lib", "--target-dir", target]
    subprocess.run(command + features, check=True, cwd=ROOT, env=environment)
    with open(os.path.join(target, "doc", "safetensors_zero.json"), encoding="utf-8") as file:
        return json.load(file)


def name_of(path):
    """The last component of a path, under which an item is exported."""
    return path.rsplit("::", 1)[-1]


def arguments(args):
    if not args:
        return ""
    if "parenthesized" in args:
        inputs = ", ".join(map(kind, args["parenthesized"]["inputs"]))
        output = args["parenthesized"]["output"]
        return f"({inputs})" + (f" -> {kind(output)}" if output else "")
    parts = []
    for arg in args.get("angle_bracketed", {}).get("args", []):
        if "lifetime" in arg:
            parts.append(arg["lifetime"])
        elif "type" in arg:
            parts.append(kind(arg["type"]))
        elif "const" in arg:
            parts.append(arg["const"]["expr"])
        else:
            parts.append("_")
    for constraint in args.get("angle_bracketed", {}).get("constraints", []):
        binding = constraint["binding"]
        if "equality" in binding:
            parts.append(f"{constraint['name']} = {kind(binding['equality']['type'])}")
        else:
            parts.append(f"{constraint['name']}: {bounds(binding['constraint'])}")
    return f"<{', '.join(parts)}>" if parts else ""


def bounds(of):
    texts = []
    for bound in of:
        if "trait_bound" in bound:
            trait = bound["trait_bound"]
            relaxed = "?" if trait["modifier"] == "maybe" else ""
            texts.append(relaxed + name_of(trait["trait"]["path"]) + arguments(trait["trait"]["args"]))
        elif "outlives" in bound:
            texts.append(bound["outlives"])
        else:
            texts.append("use<..>")
    return " + ".join(texts)


def kind(of):
    """A type as it is written in Rust."""
    if of == "infer":
        return "_"
    (case, value), = of.items()
    if case == "resolved_path":
        return name_of(value["path"]) + arguments(value["args"])
    if case in ("generic", "primitive"):
        return value
    if case == "borrowed_ref":
        lifetime = value["lifetime"] + " " if value["lifetime"] else ""
        return f"&{lifetime}{'mut ' if value['is_mutable'] else ''}{kind(value['type'])}"
    if case == "raw_pointer":
        return f"*{'mut' if value['is_mutable'] else 'const'} {kind(value['type'])}"
    if case == "slice":
        return f"[{kind(value)}]"
    if case == "array":
        return f"[{kind(value['type'])}; {value['len']}]"
    if case == "tuple":
        return f"({', '.join(map(kind, value))})"
    if case == "impl_trait":
        return f"impl {bounds(value)}"
    if case == "dyn_trait":
        traits = [name_of(t["trait"]["path"]) + arguments(t["trait"]["args"]) for t in value["traits"]]
        return "dyn " + " + ".join(traits + ([value["lifetime"]] if value["lifetime"] else []))
    if case == "qualified_path":
        of_trait = value["trait"]
        trait = f" as {name_of(of_trait['path'])}" if of_trait and of_trait["path"] else ""
        owner = kind(value["self_type"])
        return f"<{owner}{trait}>::{value['name']}" if trait else f"{owner}::{value['name']}"
    if case == "function_pointer":
        inputs = ", ".join(kind(each) for _, each in value["sig"]["inputs"])
        output = value["sig"]["output"]
        return f"fn({inputs})" + (f" -> {kind(output)}" if output else "")
    raise ValueError(f"type {case}")


def generics(of):
    """Parameters and where clauses."""
    parameters = []
    for parameter in of["params"]:
        (case, value), = parameter["kind"].items()
        if case == "lifetime":
            parameters.append(parameter["name"])
        elif case == "type" and not value["is_synthetic"]:
            text = bounds(value["bounds"])
            parameters.append(parameter["name"] + (f": {text}" if text else ""))
        elif case == "const":
            parameters.append(f"const {parameter['name']}: {kind(value['type'])}")
    clauses = []
    for clause in of["where_predicates"]:
        if "bound_predicate" in clause:
            predicate = clause["bound_predicate"]
            clauses.append(f"{kind(predicate['type'])}: {bounds(predicate['bounds'])}")
    where = f" where {', '.join(clauses)}" if clauses else ""
    return (f"<{', '.join(parameters)}>" if parameters else "", where)


class Interface:
    """The lines of the public interface, and the paths of its functions."""

    def __init__(self, doc):
        self.index = doc["index"]
        self.lines = set()
        self.functions = set()
        self.seen = set()
        self.module(self.item(doc["root"]), "")

    def item(self, id):
        return self.index.get(str(id))

    def module(self, module, path):
        exported = []
        for id in module["inner"]["module"]["items"]:
            item = self.item(id)
            if item is None or item["visibility"] != "public" or is_hidden(item):
                continue
            (case, value), = item["inner"].items()
            target = self.item(value["id"]) if case == "use" else item
            if target is not None:
                exported.append((target, value["name"] if case == "use" else item["name"]))
        # Modules last: what the root exports too is listed once, by its shorter path.
        exported.sort(key=lambda each: "module" in each[0]["inner"])
        for target, name in exported:
            self.export(target, path, name)

    def export(self, item, path, name):
        (case, value), = item["inner"].items()
        full = f"{path}{name}"
        # The guide is documentation alone.
        if is_hidden(item) or full == "guide" or item["id"] in self.seen:
            return
        self.seen.add(item["id"])
        if case == "module":
            self.lines.add(f"mod {full}")
            self.module(item, f"{full}::")
        elif case == "function":
            self.function(item, f"{full}")
        elif case in ("struct", "enum", "trait"):
            self.lines.add(f"{case} {full}{generics(value['generics'])[0]}")
            self.members(item, case, value, full)
        elif case == "constant":
            self.lines.add(f"const {full}: {kind(value['type'])}")
        else:
            raise ValueError(f"{case} {full}")

    def members(self, item, case, value, full):
        if case == "struct" and "plain" in value["kind"]:
            self.fields(value["kind"]["plain"]["fields"], full)
        elif case == "struct" and "tuple" in value["kind"]:
            self.fields([id for id in value["kind"]["tuple"] if id is not None], full)
        elif case == "enum":
            for id in value["variants"]:
                variant = self.item(id)
                shape = variant["inner"]["variant"]["kind"]
                text = ""
                if isinstance(shape, dict) and "tuple" in shape:
                    kinds = [kind(self.item(f)["inner"]["struct_field"]) for f in shape["tuple"]]
                    text = f"({', '.join(kinds)})"
                elif isinstance(shape, dict) and "struct" in shape:
                    fields = [self.item(field) for field in shape["struct"]["fields"]]
                    kinds = [f"{f['name']}: {kind(f['inner']['struct_field'])}" for f in fields]
                    text = f" {{ {', '.join(kinds)} }}"
                self.lines.add(f"variant {full}::{variant['name']}{text}")
        elif case == "trait":
            for id in value["items"]:
                member = self.item(id)
                if "function" in member["inner"]:
                    self.function(member, f"{full}::{member['name']}", counted=False)
                elif "assoc_type" in member["inner"]:
                    self.lines.add(f"type {full}::{member['name']}")
        for id in value.get("impls", []) if case != "trait" else []:
            self.implementation(self.item(id), full)

    def fields(self, ids, full):
        for id in ids:
            field = self.item(id)
            if field is not None and field["visibility"] == "public":
                self.lines.add(f"field {full}::{field['name']}: {kind(field['inner']['struct_field'])}")

    def implementation(self, item, full):
        value = item["inner"]["impl"]
        if value["is_synthetic"] or value["blanket_impl"]:
            return
        trait = value["trait"]
        if trait is not None:
            name = name_of(trait["path"])
            if name in AUTO or name == "StructuralPartialEq":
                return
            trait = name + arguments(trait["args"])
            self.lines.add(f"impl {trait} for {kind(value['for'])}")
            if not any("automatically_derived" in str(attribute) for attribute in item["attrs"]):
                methods = [self.item(id) for id in value["items"]]
                methods = [m["name"] for m in methods if "function" in m["inner"]]
                self.functions |= {f"<{kind(value['for'])} as {trait}>::{m}" for m in methods}
            return
        for id in value["items"]:
            member = self.item(id)
            if member["visibility"] != "public" or is_hidden(member):
                continue
            if "function" in member["inner"]:
                self.function(member, f"{full}::{member['name']}")
            elif "assoc_const" in member["inner"]:
                self.lines.add(f"const {full}::{member['name']}: {kind(member['inner']['assoc_const']['type'])}")

    def function(self, item, full, counted=True):
        value = item["inner"]["function"]
        parameters, where = generics(value["generics"])
        inputs = []
        for name, each in value["sig"]["inputs"]:
            text = kind(each)
            if name == "self":
                text = {"Self": "self", "&Self": "&self", "&mut Self": "&mut self"}.get(text, f"self: {text}")
                inputs.append(text)
            else:
                inputs.append(f"{name}: {text}")
        output = value["sig"]["output"]
        result = f" -> {kind(output)}" if output else ""
        unsafety = "unsafe " if value["header"]["is_unsafe"] else ""
        constness = "const " if value["header"]["is_const"] else ""
        self.lines.add(f"{constness}{unsafety}fn {full}{parameters}({', '.join(inputs)}){result}{where}")
        if counted:
            self.functions.add(full)


def is_hidden(item):
    return any("doc(hidden)" in str(attribute) for attribute in item["attrs"])


def unprobed(functions):
    """Functions of the core that the probe does not name."""
    with open(PROBE, encoding="utf-8") as file:
        probe = re.sub(r"//.*", "", file.read())
    probe = re.sub(r"::<[^()]*?>(?=::)", "", probe)
    names = set(re.findall(r"\b(?:\w+::)+\w+", probe))
    names |= {without_parameters(name) for name in re.findall(r"<.+? as .+?>::\w+", probe)}
    return sorted(name for name in functions if without_parameters(name) not in names)


def without_parameters(name):
    """Without lifetimes, and with `_` for parameters of types: `<Shape as PartialEq<[usize; _]>>::eq`."""
    name = re.sub(r"'\w+(, )?", "", name).replace("<>", "").replace("& ", "&").replace("core::error::", "")
    return re.sub(r"\b(E|u8|EndOfSource)\b", "_", re.sub(r"; \w+\]", "; _]", name))


def main():
    sections, before = [], set()
    for layer, features in LAYERS.items():
        interface = Interface(document(features))
        if layer == "core":
            core = interface.functions
        sections.append(f"# {layer}\n" + "".join(f"{line}\n" for line in sorted(interface.lines - before)))
        before |= interface.lines
    text = "\n".join(sections)
    if sys.argv[1:] == ["--write"]:
        with open(SNAPSHOT, "w", encoding="utf-8") as file:
            file.write(text)
    faults = []
    with open(SNAPSHOT, encoding="utf-8") as file:
        committed = file.read()
    if committed != text:
        faults += difflib.unified_diff(
            committed.splitlines(), text.splitlines(), "committed", "now", lineterm="", n=0
        )
        faults.append("the public interface has changed; if that is intended, run list.py --write")
    missing = unprobed(core)
    faults += [f"{name} is not in tests/no_panic/src/every_function.rs" for name in missing]
    print("\n".join(faults) or f"{len(core)} functions of the core, all probed; interface as committed")
    sys.exit(1 if faults else 0)


main()
