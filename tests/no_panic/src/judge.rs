//! A panic handler that calls an undefined function, so that linking fails if it is reachable.

use core::panic::PanicInfo;

// On Linux, `memcpy` and similar functions come from libc instead of `compiler_builtins`.
#[cfg_attr(target_os = "linux", link(name = "c"))]
extern "C" {
    fn a_path_that_panics_is_left() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe { a_path_that_panics_is_left() }
}
