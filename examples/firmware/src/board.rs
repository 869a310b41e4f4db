//! The board: its stack, its exit, and its panic handler.

use core::fmt::Display;
use core::panic::PanicInfo;

use cortex_m_rt::STACK_PAINT_VALUE;
use cortex_m_semihosting::{debug, hprintln};

extern "C" {
    static _stack_start: u32;
    static _stack_end: u32;
}

/// Prints the peak stack usage in bytes. The stack is painted before `main`.
pub fn print_stack() {
    let (top, bottom) = (&raw const _stack_start as usize, &raw const _stack_end as usize);
    let words = (bottom..top).step_by(size_of::<u32>());
    // SAFETY: the linker reserves this range for the stack, and nothing writes to it meanwhile.
    let painted = |at: &usize| unsafe { (*at as *const u32).read_volatile() } == STACK_PAINT_VALUE;
    let unused = words.take_while(painted).count() * size_of::<u32>();
    hprintln!("stack: {} bytes", top - bottom - unused);
}

/// Returns the value, or prints the error and exits.
pub fn ok<T, E: Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => {
            hprintln!("error: {}", error);
            stop(debug::EXIT_FAILURE)
        }
    }
}

/// Exits QEMU.
pub fn stop(status: debug::ExitStatus) -> ! {
    loop {
        debug::exit(status);
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Some(location) = info.location() {
        hprintln!("panicked at {}:{}", location.file(), location.line());
    }
    stop(debug::EXIT_FAILURE)
}
