//! What makes the linker the judge: the panic handler calls a function that does not exist.

use core::panic::PanicInfo;

// memcpy and its like, where they are not the compiler's own.
#[cfg_attr(target_os = "linux", link(name = "c"))]
extern "C" {
    fn a_path_that_panics_is_left() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe { a_path_that_panics_is_left() }
}
