//! Files in a zip archive, links among them included.

use super::super::PackageError;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use zip::ZipArchive;

/// Links that are followed on the way to one file.
const MOST_LINKS: usize = 40;
/// The longest target of a link, in bytes.
const LONGEST_LINK: u64 = 4096;
/// The most entries of an archive.
const MOST_ENTRIES: usize = 200_000;

pub(super) struct Archive {
    archive: ZipArchive<File>,
    /// By their paths.
    entries: BTreeMap<String, Entry>,
}

enum Entry {
    Folder,
    File { at: usize, size: u64 },
    Link(String),
}

impl Archive {
    pub(super) fn open(path: &Path, most: u64) -> Result<Self, PackageError> {
        let wrong = |message: String| PackageError::new("", ".", message);
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let mut archive =
            ZipArchive::new(file).map_err(|error| wrong(format!("is no zip archive: {error}")))?;
        if archive.len() > MOST_ENTRIES {
            return Err(wrong(format!(
                "holds {} entries; at most {MOST_ENTRIES} are read",
                archive.len()
            )));
        }
        let mut entries = BTreeMap::new();
        for at in 0..archive.len() {
            let mut entry = archive
                .by_index(at)
                .map_err(|error| wrong(format!("entry {}: {error}", at + 1)))?;
            let name = entry
                .name()
                .map_err(|error| wrong(error.to_string()))?
                .trim_end_matches('/')
                .to_owned();
            let strange = |part: &str| {
                part.is_empty() || part == "." || part == ".." || part.contains(['\\', '\0'])
            };
            if name.split('/').any(strange) {
                return Err(wrong(format!(
                    "holds the path {name:?}, which leads out of it or is no plain path"
                )));
            }
            let is_link = entry
                .unix_mode()
                .is_some_and(|mode| mode & 0o170_000 == 0o120_000);
            let kind = if entry.is_dir() {
                Entry::Folder
            } else if is_link {
                let mut target = String::new();
                let read = entry
                    .by_ref()
                    .take(LONGEST_LINK.min(most))
                    .read_to_string(&mut target);
                read.map_err(|error| wrong(format!("{name}: {error}")))?;
                Entry::Link(target)
            } else {
                Entry::File {
                    at,
                    size: entry.size(),
                }
            };
            drop(entry);
            entries.insert(name, kind);
        }
        let mut folders: Vec<String> = Vec::new();
        for name in entries.keys() {
            folders.extend(
                name.match_indices('/')
                    .filter_map(|(at, _)| name.get(..at))
                    .map(str::to_owned),
            );
        }
        for folder in folders {
            entries.entry(folder).or_insert(Entry::Folder);
        }
        let mut archive = Self { archive, entries };
        archive.enter_top()?;
        Ok(archive)
    }

    /// Packages are zipped with or without the folder that they lie in.
    fn enter_top(&mut self) -> Result<(), PackageError> {
        if self.entries.contains_key("problem.yaml") {
            return Ok(());
        }
        let mut tops = self
            .entries
            .keys()
            .filter_map(|name| name.strip_suffix("/problem.yaml"));
        let mut tops = tops.by_ref().filter(|top| !top.contains('/'));
        let (Some(top), None) = (tops.next(), tops.next()) else {
            let what = "holds no `problem.yaml`, neither at its top nor in the one folder there";
            return Err(PackageError::new("", ".", what));
        };
        let top = format!("{top}/");
        let entries = std::mem::take(&mut self.entries);
        self.entries = entries
            .into_iter()
            .filter_map(|(name, entry)| {
                name.strip_prefix(&top).map(|name| (name.to_owned(), entry))
            })
            .collect();
        Ok(())
    }

    /// The path without links; an error where one leads out of the archive or round in circles.
    fn resolve(&self, path: &str) -> Result<String, PackageError> {
        let wrong = |what: &str| PackageError::severe(path, what);
        let mut done: Vec<String> = Vec::new();
        let mut open: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut links = 0;
        while let Some(part) = open.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.pop()
                        .ok_or_else(|| wrong("is a link that leads out of the package"))?;
                    continue;
                }
                _ => done.push(part),
            }
            if let Some(Entry::Link(target)) = self.entries.get(&done.join("/")) {
                links += 1;
                if links > MOST_LINKS {
                    return Err(wrong("is a link that leads round in circles"));
                }
                if target.starts_with('/') {
                    return Err(wrong("is a link that leads out of the package"));
                }
                done.pop();
                open.extend(target.trim_end().rsplit('/').map(str::to_owned));
            }
        }
        Ok(done.join("/"))
    }

    pub(super) fn list(&self, folder: &str) -> Result<Vec<(String, bool)>, PackageError> {
        let folder = self.resolve(folder)?;
        let start = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let mut names = Vec::new();
        for (path, _) in self.entries.range(start.clone()..) {
            let Some(name) = path.strip_prefix(&start) else {
                break;
            };
            if !name.contains('/') {
                let is_folder =
                    matches!(self.entries.get(&self.resolve(path)?), Some(Entry::Folder));
                names.push((name.to_owned(), is_folder));
            }
        }
        Ok(names)
    }

    pub(super) fn size(&self, path: &str) -> Result<Option<u64>, PackageError> {
        Ok(match self.entries.get(&self.resolve(path)?) {
            Some(Entry::File { size, .. }) => Some(*size),
            _ => None,
        })
    }

    /// Reads at most `limit` bytes.
    pub(super) fn read(
        &mut self,
        path: &str,
        limit: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<usize, String> {
        let path = self.resolve(path).map_err(|error| error.message)?;
        let Some(Entry::File { at, .. }) = self.entries.get(&path) else {
            return Err("is no file".to_owned());
        };
        let entry = self
            .archive
            .by_index(*at)
            .map_err(|error| error.to_string())?;
        entry
            .take(limit)
            .read_to_end(bytes)
            .map_err(|error| error.to_string())
    }
}
