//! Whether there can be a hardware adapter at all, known without a driver: the loaders and drivers of Linux complain
//! on standard error by themselves (no display, no `XDG_RUNTIME_DIR`), which is noise where the CPU does the work.

use std::path::Path;

/// How the names of device files begin that GPUs have outside `/dev/dri`: NVIDIA's, WSL's, Adreno's, Mali's, PowerVR's.
const OTHERS: [&str; 5] = ["nvidia", "dxg", "kgsl", "mali", "pvr"];

/// Whether it is worth asking the drivers for hardware. Elsewhere than on Linux it always is.
pub(super) fn is_possible() -> bool {
    // Whoever names a driver wants it to be asked.
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"];
    !cfg!(target_os = "linux")
        || named.iter().any(|name| std::env::var_os(name).is_some())
        || has_device(Path::new("/dev"))
}

fn has_device(folder: &Path) -> bool {
    let names = |folder: &Path| -> Option<Vec<String>> {
        let files = std::fs::read_dir(folder).ok()?;
        Some(files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect())
    };
    // Devices that may not be listed may be there.
    let Some(all) = names(folder) else { return true };
    let other = |name: &String| OTHERS.iter().any(|start| name.starts_with(start));
    let drawn = || names(&folder.join("dri")).is_none_or(|found| !found.is_empty());
    all.iter().any(other) || (all.iter().any(|name| name == "dri") && drawn())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_seen_by_their_files() {
        let dev = std::env::temp_dir().join(format!("querent-dev-{}", std::process::id()));
        std::fs::create_dir_all(&dev).expect("a temporary folder");
        std::fs::write(dev.join("null"), "").expect("writes");
        assert!(!has_device(&dev));
        std::fs::create_dir(dev.join("dri")).expect("creates");
        assert!(!has_device(&dev), "an empty folder is no device");
        std::fs::write(dev.join("dri/renderD128"), "").expect("writes");
        assert!(has_device(&dev));
        std::fs::remove_dir_all(dev.join("dri")).expect("removes");
        for name in ["nvidia0", "dxg", "kgsl-3d0", "mali0"] {
            std::fs::write(dev.join(name), "").expect("writes");
            assert!(has_device(&dev), "{name}");
            std::fs::remove_file(dev.join(name)).expect("removes");
        }
        assert!(!has_device(&dev));
        std::fs::remove_dir_all(&dev).expect("cleans up");
        assert!(has_device(&dev), "what cannot be listed may have one");
    }
}
