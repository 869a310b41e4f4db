//! The board: its stack, how it ends, and what it does in a panic.

use core::fmt::Display;
use core::panic::PanicInfo;

use cortex_m_rt::STACK_PAINT_VALUE;
use cortex_m_semihosting::{debug, hprintln};

extern "C" {
    static _stack_start: u32;
    static _stack_end: u32;
}

/// Prints how deep the stack has been, in bytes. It was painted before `main`.
pub fn print_stack() {
    let (top, bottom) = (&raw const _stack_start as usize, &raw const _stack_end as usize);
    let words = (bottom..top).step_by(size_of::<u32>());
    // SAFETY: the linker has set this range aside for the stack, and nothing writes while it is read.
    let painted = |at: &usize| unsafe { (*at as *const u32).read_volatile() } == STACK_PAINT_VALUE;
    let unused = words.take_while(painted).count() * size_of::<u32>();
    hprintln!("stack: {} bytes", top - bottom - unused);
}

/// The value, or the end of the run with the error printed.
pub fn ok<T, E: Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => {
            hprintln!("error: {}", error);
            stop(debug::EXIT_FAILURE)
        }
    }
}

/// Ends the run.
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
