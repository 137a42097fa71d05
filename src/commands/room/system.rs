//! What memory the system has for this process.

/// Bytes that this process may still take before the system refuses, and who says so; `None` where nobody does.
pub fn limit() -> Option<(u64, &'static str)> {
    let left = linux::limited(&read("/proc/self/limits"), &read("/proc/self/status"))?;
    Some((left, "what `ulimit -v` leaves"))
}

/// Bytes that are there, and who says so. The system may give more, and end somebody for it.
pub fn available() -> Option<(u64, &'static str)> {
    // Some is left to others: they ask for more while a run goes on.
    let machine = linux::available(&read("/proc/meminfo"));
    let machine = machine.map(|bytes| (bytes / 10 * 9, "nine tenths of the available memory"));
    let group = linux::grouped(&read("/proc/self/cgroup"), &read);
    let group = group.map(|bytes| (bytes, "what the control group leaves"));
    machine.into_iter().chain(group).min()
}

/// Has all threads take memory from one heap. glibc sets 64 MiB of addresses aside for each thread, which a limit on addresses
/// counts: of little there would be nothing left for those who need it. To be called before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn share_one_heap() {
    use std::ffi::c_int;
    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    const M_ARENA_MAX: c_int = -8;
    // SAFETY: glibc has had this function of this type since 2.10; it takes a lock of its own and keeps the value.
    unsafe { mallopt(M_ARENA_MAX, 1) };
}

/// Elsewhere there is nothing to say.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_heap() {}

/// Only Linux has these files. Elsewhere nobody is asked.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

mod linux {
    /// The number behind a word at the beginning of a line.
    fn number(text: &str, word: &str) -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
        rest.split_whitespace().next()?.parse().ok()
    }

    /// Of `/proc/meminfo`.
    pub fn available(memory: &str) -> Option<u64> {
        Some(number(memory, "MemAvailable:")? << 10)
    }

    /// What a bound on the addresses leaves beside those that are taken.
    pub fn limited(limits: &str, status: &str) -> Option<u64> {
        let most = number(limits, "Max address space")?;
        Some(most.saturating_sub(number(status, "VmSize:").unwrap_or(0) << 10))
    }

    /// What the narrowest control group on the way up leaves. What is there of files can be given up, so only what is
    /// nobody's but the processes' counts.
    pub fn grouped(groups: &str, read: &dyn Fn(&str) -> String) -> Option<u64> {
        let mut path = groups.lines().find_map(|line| line.strip_prefix("0::"))?.trim_end_matches('/');
        let mut least = None;
        loop {
            let folder = format!("/sys/fs/cgroup{path}");
            if let Ok(most) = read(&format!("{folder}/memory.max")).trim().parse::<u64>() {
                let taken = number(&read(&format!("{folder}/memory.stat")), "anon ").unwrap_or(0);
                let left = most.saturating_sub(taken);
                least = Some(least.map_or(left, |least: u64| least.min(left)));
            }
            let Some((above, _)) = path.rsplit_once('/') else { return least };
            path = above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::linux::*;

    #[test]
    fn the_system_is_understood() {
        assert_eq!(available("MemTotal:  9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available(""), None);
        let limits = "Limit   Soft Limit   Hard Limit   Units\nMax address space         1048576  2  bytes\n";
        assert_eq!(limited(limits, "VmPeak: 9 kB\nVmSize:\t 24 kB\n"), Some(1_000_000 + 24_000));
        assert_eq!(limited("Max address space         unlimited            unlimited   bytes\n", ""), None);
        let read = |path: &str| match path {
            "/sys/fs/cgroup/a/b/memory.max" => "max\n".to_string(),
            "/sys/fs/cgroup/a/memory.max" => "1000\n".into(),
            "/sys/fs/cgroup/a/memory.stat" => "anon 300\nfile 600\n".into(),
            _ => String::new(),
        };
        assert_eq!(grouped("0::/a/b\n", &read), Some(700));
        assert_eq!(grouped("0::/\n", &read), None);
        assert_eq!(grouped("1:name=x:/a\n", &read), None);
    }
}
