//! The units: a closed list for each kind of quantity, and hints for what people write instead.

/// A kind of quantity and its units, each as a count of the base unit.
pub(super) struct Family {
    /// With its article: `a time`.
    pub quantity: &'static str,
    /// What is counted.
    pub base: &'static str,
    /// A legal amount.
    pub example: &'static str,
    /// What a bare number probably meant.
    pub likely_unit: &'static str,
    /// Names, with their size in base units.
    pub units: &'static [(&'static str, u64)],
    /// What people write instead of a unit, and what to say then.
    pub hints: &'static [(&'static str, &'static str)],
}

/// Times, counted in nanoseconds.
pub(super) const TIME: Family = Family {
    quantity: "a time",
    base: "nanoseconds",
    example: "10 ms",
    likely_unit: "ms",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    hints: &[
        ("m", "`m` could be minutes or milliseconds: write `min` or `ms`"),
        ("M", "write `min` for minutes, `ms` for milliseconds"),
        ("\u{b5}s", "write `us` for microseconds"),
        ("\u{3bc}s", "write `us` for microseconds"),
        ("sec", "write `s` for seconds"),
        ("secs", "write `s` for seconds"),
        ("second", "write `s` for seconds"),
        ("seconds", "write `s` for seconds"),
        ("msec", "write `ms` for milliseconds"),
        ("usec", "write `us` for microseconds"),
        ("minute", "write `min` for minutes"),
        ("minutes", "write `min` for minutes"),
        ("hour", "write `h` for hours"),
        ("hours", "write `h` for hours"),
        ("hr", "write `h` for hours"),
        ("day", "write `d` for days"),
        ("days", "write `d` for days"),
    ],
};

/// Amounts of bytes.
pub(super) const SIZE: Family = Family {
    quantity: "an amount of bytes",
    base: "bytes",
    example: "112 GB",
    likely_unit: "GB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    hints: &[
        ("KB", "write `kB` for 1000 bytes, `KiB` for 1024"),
        ("K", "write `kB` for 1000 bytes, `KiB` for 1024"),
        ("k", "write `kB` for 1000 bytes, `KiB` for 1024"),
        ("M", "write `MB` for 10^6 bytes, `MiB` for 2^20"),
        ("G", "write `GB` for 10^9 bytes, `GiB` for 2^30"),
        ("T", "write `TB` for 10^12 bytes, `TiB` for 2^40"),
        ("b", "`b` could be bits: write `B` for bytes"),
        ("kb", "`b` could be bits: write `kB` for bytes"),
        ("Kb", "`b` could be bits: write `kB` for bytes"),
        ("Mb", "`b` could be bits: write `MB` for bytes"),
        ("Gb", "`b` could be bits: write `GB` for bytes"),
        ("Tb", "`b` could be bits: write `TB` for bytes"),
        ("bytes", "write `B` for bytes"),
        ("byte", "write `B` for bytes"),
    ],
};

/// Rates are counted in bits a second, so that both their forms are whole numbers.
pub(super) const RATE: Family = Family {
    quantity: "a rate",
    base: "bits a second",
    example: "7 GB/s",
    likely_unit: "GB/s",
    units: &[
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
        ("TB/s", 8_000_000_000_000),
        ("KiB/s", 8 << 10),
        ("MiB/s", 8 << 20),
        ("GiB/s", 8 << 30),
        ("TiB/s", 8 << 40),
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
    hints: &[
        ("Mbps", "write `Mbit/s` for bits, `MB/s` for bytes"),
        ("Gbps", "write `Gbit/s` for bits, `GB/s` for bytes"),
        ("Tbps", "write `Tbit/s` for bits, `TB/s` for bytes"),
        ("Mb/s", "write `Mbit/s` for bits, `MB/s` for bytes"),
        ("Gb/s", "write `Gbit/s` for bits, `GB/s` for bytes"),
        ("Tb/s", "write `Tbit/s` for bits, `TB/s` for bytes"),
        ("MBps", "write `MB/s`"),
        ("GBps", "write `GB/s`"),
        ("TBps", "write `TB/s`"),
        ("KB/s", "write `kB/s` for 1000 bytes a second, `KiB/s` for 1024"),
    ],
};
