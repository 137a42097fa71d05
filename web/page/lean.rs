/// A script as it goes around: without the spaces in front of its lines and the lines that are remarks. Whoever allows it by
/// its hash, here and in the studio's policy, takes that of this text.
pub fn lean(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}
