//! Options of the verbs, missing names, and unreadable files.

use crate::run::{good, json, run, text};
use crate::support::file::{file, u8_entry, zeros};
use crate::support::temp::Temp;

const ANIMALS: &str = "examples/animals.safetensors";

fn names(arguments: &[&str]) -> Vec<String> {
    let lines = text(arguments);
    lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn tensors_sorts_and_filters() {
    let all = ["tensors", ANIMALS];
    assert_eq!(names(&all), ["counts", "scale", "embedding.weight"]);
    let sorted = |by| names(&[&all[..], &["--sort", by]].concat());
    assert_eq!(sorted("offset"), ["counts", "scale", "embedding.weight"]);
    assert_eq!(sorted("name"), ["counts", "embedding.weight", "scale"]);
    assert_eq!(sorted("size"), ["embedding.weight", "counts", "scale"]);
    let matching = |glob| names(&[&all[..], &["--match", glob]].concat());
    assert_eq!(matching("*.weight"), ["embedding.weight"]);
    assert_eq!(matching("*c*"), ["counts", "scale"]);
    assert_eq!(matching("scal?"), ["scale"]);
    assert_eq!(matching("c"), [""; 0]);
    let listed = json(&["tensors", "--json", "--match", "s*", ANIMALS]);
    assert_eq!(listed["tensors"].as_array().unwrap().len(), 1);
}

#[test]
fn piped_names_are_complete_and_on_one_line() {
    let temp = Temp::new();
    let long = "n".repeat(5_000);
    let members = [
        u8_entry(&long, 0, 1),
        u8_entry("tab\\tand\\nline", 1, 1),
        u8_entry("back\\\\slash", 2, 1),
        u8_entry("\\u202egnp.\\u2066", 3, 1),
        u8_entry("Grüße \\\"日本\\\"", 4, 1),
    ];
    let path = temp.write("n.safetensors", zeros(format!("{{{}}}", members.join(",")), 5));
    let found = names(&["tensors", path.to_str().unwrap()]);
    let expected =
        [&*long, "tab\\tand\\nline", "back\\\\slash", "\\u{202e}gnp.\\u{2066}", "Grüße \"日本\""];
    assert_eq!(found, expected);
}

#[test]
fn unknown_names_get_a_suggestion() {
    for arguments in [
        vec!["stats", ANIMALS, "embedding.wieght"],
        vec!["export", ANIMALS, "embedding.wieght", "-o", "-"],
    ] {
        let run = run(&arguments);
        assert_eq!(run.code, Some(1));
        assert_eq!(
            run.error(),
            "safetensor: examples/animals.safetensors: tensor \"embedding.wieght\": \
             no tensor has this name; did you mean \"embedding.weight\"?"
        );
    }
    let index = "tests/corpus/index-good";
    let run = run(&["stats", index, "zzz"]);
    assert_eq!(run.code, Some(1));
    assert!(run.error().starts_with("safetensor: tests/corpus/index-good/model.safetensors.index"));
}

#[test]
fn unreadable_files_exit_with_2() {
    let temp = Temp::new();
    let folder = temp.path().to_str().unwrap();
    let missing = temp.join("missing.safetensors");
    let missing = missing.to_str().unwrap();
    for verb in ["info", "tensors", "verify", "stats", "hash"] {
        for path in [folder, missing] {
            let run = run(&[verb, path]);
            assert_eq!((run.code, run.stdout.len()), (Some(2), 0), "{verb}");
            assert!(run.error().starts_with(&format!("safetensor: {path}: ")), "{}", run.stderr);
        }
    }
    let bad = "tests/corpus/dup-tensor-identical.safetensors";
    let both = run(&["verify", bad, missing, ANIMALS]);
    assert_eq!(both.code, Some(2));
    assert_eq!(both.stderr.lines().count(), 2);
    assert_eq!(both.stdout, b"examples/animals.safetensors: valid, 3 tensors\n");
    assert_eq!(run(&["verify", bad, ANIMALS]).code, Some(1));
}

#[test]
fn export_replaces_files_atomically() {
    let temp = Temp::new();
    let out = temp.write("out.f32", "before");
    let path = out.to_str().unwrap();
    let run_ = run(&["export", ANIMALS, "nothing", "-o", path]);
    assert_eq!(run_.code, Some(1));
    assert_eq!(std::fs::read(&out).unwrap(), b"before");
    good(&["export", ANIMALS, "counts", "-o", path]);
    assert_eq!(std::fs::read(&out).unwrap().len(), 40);
    let names: Vec<_> =
        std::fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["out.f32"]);

    let copy = temp.write("m.safetensors", std::fs::read(ANIMALS).unwrap());
    let copy = copy.to_str().unwrap();
    let same = run(&["export", copy, "counts", "-o", copy]);
    assert_eq!(same.code, Some(2));
    let sentence = "a file of the model being read, which is never overwritten";
    assert!(same.error().ends_with(sentence), "{}", same.error());
    assert_eq!(std::fs::read(copy).unwrap(), std::fs::read(ANIMALS).unwrap());

    for nowhere in [temp.path().to_owned(), temp.join("no/such/folder")] {
        let run = run(&["export", copy, "counts", "-o", nowhere.to_str().unwrap()]);
        assert_eq!(run.code, Some(2));
        assert!(run.error().starts_with(&format!("safetensor: {}: ", nowhere.display())));
    }
}

fn size_of_png(bytes: &[u8]) -> (u32, u32) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let first = pixels[..3].to_vec();
    assert!(pixels.chunks_exact(3).any(|pixel| pixel != first), "the picture has only one colour");
    (info.width, info.height)
}

#[test]
fn png_pictures() {
    let temp = Temp::new();
    let heat = good(&["export", ANIMALS, "embedding.weight", "--png", "-"]);
    assert!(size_of_png(&heat) > (500, 500));
    let histogram = temp.join("h.png");
    let path = histogram.to_str().unwrap();
    assert!(!good(&["stats", ANIMALS, "embedding.weight", "--png", path]).is_empty());
    assert!(size_of_png(&std::fs::read(&histogram).unwrap()) > (700, 350));
    let both = run(&["export", ANIMALS, "counts", "--png", "-", "-o", "-"]);
    assert_eq!((both.code, both.stdout.len()), (Some(2), 0));
    assert!(both.error().ends_with("-: -o and --png name the same file"));
    let several = run(&["stats", ANIMALS, "--png", "-"]);
    assert_eq!(several.code, Some(2));
    assert!(several.error().ends_with("--png needs the name of one tensor"));
    // The size of pictures is bounded for tensors of any size.
    for (shape, dtype, len) in [("[3,100000]", "U8", 300_000), ("[200000,1]", "F4", 100_000)] {
        let header =
            format!(r#"{{"t":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{len}]}}}}"#);
        let data: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let path = temp.write("t.safetensors", file(header, &data));
        let (width, height) =
            size_of_png(&good(&["export", path.to_str().unwrap(), "t", "--png", "-"]));
        assert!(width <= 1_400 && height <= 1_100, "{width} {height}");
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(text(&["completions", shell]).contains("safetensor"), "{shell}");
    }
    assert!(!text(&["--help"]).contains("completions"));
}

#[test]
fn info_prints_metadata_complete_and_escaped() {
    let temp = Temp::new();
    let long = "x".repeat(5_000);
    let header = format!(
        r#"{{"__metadata__":{{"long":"{long}","a\nb":"c\\d\u001b[2J\u202e"}},{}}}"#,
        u8_entry("t", 0, 1)
    );
    let path = temp.write("m.safetensors", zeros(header, 1));
    let printed = text(&["info", path.to_str().unwrap()]);
    assert!(printed.contains(&format!("\n  long = {long}\n")));
    assert!(printed.contains("\n  a\\nb = c\\\\d\\u{1b}[2J\\u{202e}\n"), "{printed}");
}
