//! The list of all schedules: one line each. `schedule list`, `--help`, the docs' table, the error for an
//! unknown name, the JSON schema and the tests all walk it.

use crate::Schedule;

/// Declares the module of each schedule and lists its `SCHEDULE`.
macro_rules! schedules {
    ($($module:ident),* $(,)?) => {
        #[path = "schedules"]
        mod schedules {
            $(pub(super) mod $module;)*
        }

        /// All schedules, in the order in which a reader should meet them.
        pub fn all() -> &'static [&'static dyn Schedule] {
            &[$(&schedules::$module::SCHEDULE),*]
        }
    };
}

schedules! {
    fill_drain,
    one_f_one_b,
    interleaved,
    looped_bfs,
    grouped_interleaved,
    zb_h1,
    zb_h2,
    zb_1p,
    zb_2p,
    interleaved_zb,
    zb_v,
    zb_v_auto,
    v_half,
    v_min,
    one_f_one_b_v,
    hanayo,
    chimera,
    dualpipe,
    dualpipe_v,
    greedy,
}

/// The schedule of that name or alias.
pub fn find(name: &str) -> Option<&'static dyn Schedule> {
    all().iter().copied().find(|schedule| {
        let entry = schedule.entry();
        entry.name == name || entry.aliases.contains(&name)
    })
}
