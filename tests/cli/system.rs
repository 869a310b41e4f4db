//! The program and its environment: closed pipes, signals, memory and full disks.

#![cfg(unix)]

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{command, run};
use crate::support::file::{u8_entry, zeros};
use crate::support::temp::Temp;

const ANIMALS: &str = "examples/animals.safetensors";
const GIB: u64 = 1 << 30;

/// Creates a sparse file of one F32 tensor of `len` bytes.
fn sparse(temp: &Temp, name: &str, len: u64) -> std::path::PathBuf {
    let header =
        format!(r#"{{"t":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{len}]}}}}"#, len / 4);
    let begin = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    temp.write_sparse(name, &begin, begin.len() as u64 + len, &1_f32.to_le_bytes())
}

/// Runs the program with a closed stdout. Returns its exit code and stderr.
fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let mut child =
        command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap().code(), stderr)
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let temp = Temp::new();
    let members: Vec<String> = (0..20_000).map(|i| u8_entry(&format!("t{i}"), i, 1)).collect();
    let many = temp.write("many.safetensors", zeros(format!("{{{}}}", members.join(",")), 20_000));
    let many = many.to_str().unwrap();
    for arguments in [
        vec!["tensors", many],
        vec!["tensors", "--json", many],
        vec!["info", many],
        vec!["hash", many],
        vec!["stats", "--bins", "0", many],
        vec!["export", many, "t0", "-o", "-"],
        vec!["completions", "bash"],
        vec!["--help"],
    ] {
        assert_eq!(unread(&arguments), (Some(0), String::new()), "{arguments:?}");
    }
    // Exit codes still give the verdict.
    let bad = "tests/corpus/dup-tensor-identical.safetensors";
    let mut several = vec!["verify", "--json"];
    several.extend([many; 300]);
    assert_eq!(unread(&several), (Some(0), String::new()));
    several.push(bad);
    assert_eq!(unread(&several), (Some(1), String::new()));
    assert_eq!(unread(&["diff", "--json", many, ANIMALS]), (Some(1), String::new()));
    assert_eq!(unread(&["selftest"]), (Some(0), String::new()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command(&["tensors", ANIMALS]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("safetensor: standard output: cannot be written: "), "{stderr}");
    let run = run(&["export", ANIMALS, "counts", "-o", "/dev/full"]);
    assert_eq!(run.code, Some(2));
    assert!(run.error().starts_with("safetensor: /dev/full: cannot be written: "));
    assert!(Path::new("/dev/full").exists());
}

/// Runs the program in 50 MiB of address space. Returns its exit code and the number of bytes read.
#[cfg(target_os = "linux")]
fn bounded(arguments: &[&str]) -> (Option<i32>, u64) {
    // The shell's count of bytes read includes that of its finished children.
    let script = "ulimit -v 51200; \"$@\" >/dev/null; code=$?; cat /proc/$$/io; exit $code";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_safetensor")]).args(arguments);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let read = printed.lines().find_map(|line| line.strip_prefix("rchar: "));
    let read = read.unwrap_or_else(|| panic!("{printed} {stderr}"));
    (output.status.code(), read.parse().unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn data_of_large_files_is_read_only_if_needed() {
    let temp = Temp::new();
    let path = sparse(&temp, "large.safetensors", 5 * GIB);
    let path = path.to_str().unwrap();
    let (_, base) = bounded(&["--version"]);
    for verb in ["verify", "info", "tensors"] {
        let (code, read) = bounded(&[verb, path]);
        assert_eq!(code, Some(0), "{verb}");
        assert!(
            read.saturating_sub(base) < 64 << 10,
            "{verb} read {read} bytes, {base} of them to start the program"
        );
    }
    // Exporting the last rows doesn't read the data before them.
    let rows = ["export", path, "t", "-o", "-", "--rows", "1342177270.."];
    let (code, read) = bounded(&rows);
    assert_eq!(code, Some(0));
    assert!(read.saturating_sub(base) < 64 << 10, "{read}");
    let exported = crate::run::good(&rows);
    assert_eq!((exported.len(), &exported[36..]), (40, &1_f32.to_le_bytes()[..]));
}

#[test]
#[cfg(target_os = "linux")]
fn data_is_processed_in_bounded_memory() {
    let temp = Temp::new();
    let path = sparse(&temp, "data.safetensors", GIB / 16);
    let path = path.to_str().unwrap();
    let png = temp.join("out.png");
    let out = temp.join("out.f32");
    for arguments in [
        vec!["stats", path],
        vec!["hash", "--algorithm", "blake3", path],
        vec!["diff", path, path],
        vec!["export", path, "t", "-o", out.to_str().unwrap()],
        vec!["export", path, "t", "--png", png.to_str().unwrap()],
    ] {
        let (code, read) = bounded(&arguments);
        assert_eq!(code, Some(0), "{arguments:?}");
        assert!(read >= GIB / 16);
    }
}

#[test]
fn an_interrupted_export_leaves_nothing() {
    let temp = Temp::new();
    let path = sparse(&temp, "large.safetensors", 5 * GIB);
    let folder = temp.join("out");
    std::fs::create_dir(&folder).unwrap();
    let out = folder.join("t.f32");
    for signal in ["INT", "TERM"] {
        let arguments = ["export", path.to_str().unwrap(), "t", "-o", out.to_str().unwrap()];
        let mut child = command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let entries = || std::fs::read_dir(&folder).unwrap().count();
        let begin = Instant::now();
        while entries() == 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "no temporary file appeared");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(!out.exists());
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(entries(), 0, "{signal}");
    }
}

#[test]
fn export_writes_to_devices_without_replacing_them() {
    let run = run(&["export", ANIMALS, "counts", "-o", "/dev/null"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    use std::os::unix::fs::FileTypeExt as _;
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn export_writes_through_links() {
    let temp = Temp::new();
    let target = temp.write("target", "before");
    let link = temp.join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    crate::run::good(&["export", ANIMALS, "counts", "-o", link.to_str().unwrap()]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let metadata = std::fs::metadata(&target).unwrap();
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (40, 0o640));
}

/// A model can have more files than a process can have open.
#[test]
#[cfg(target_os = "linux")]
fn many_shards_are_not_all_open_at_once() {
    let temp = Temp::new();
    let mut map = Vec::new();
    for shard in 0..300 {
        let entry = u8_entry(&format!("t{shard}"), 0, 1);
        temp.write(format!("{shard}.safetensors"), zeros(format!("{{{entry}}}"), 1));
        map.push(format!(r#""t{shard}":"{shard}.safetensors""#));
    }
    let index = format!(r#"{{"weight_map":{{{}}}}}"#, map.join(","));
    let index = temp.write("model.safetensors.index.json", index);
    let index = index.to_str().unwrap();
    for arguments in [
        vec!["info", index],
        vec!["tensors", index],
        vec!["verify", index],
        vec!["stats", index],
        vec!["hash", index],
        vec!["diff", index, index],
    ] {
        let script = "ulimit -n 150; exec \"$@\"";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_safetensor")]).args(&arguments);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{arguments:?}");
    }
}
