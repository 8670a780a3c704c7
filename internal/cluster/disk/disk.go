// Package disk is a file system that can lose unsynced writes, fill up, and be slow. It lies under the data of one
// cluster node. All operations are passed on to a folder beside the data, its store, which always holds the present
// state.
//
// A separate process serves it over FUSE: this program, started with the argument cluster.FaultFSCommand. A program
// that opens files of a file system that it serves itself could deadlock.
//
// # What is lost
//
// Lose restores a state that a machine may have after a power failure. The rules are those by which ext4 with
// data=ordered may lose the most. All that existed at the mount, or at the last Sync, is safe.
//
//   - The content of a file and its size are safe after fsync, fdatasync, or a write with O_SYNC or O_DSYNC has
//     returned. All later writes are lost completely, and a file that was never synced is empty. sync_file_range, sync
//     and syncfs make nothing safe. Writes through a shared memory map arrive when the kernel writes them back, at
//     msync, munmap or the end of the process. Then they count as other writes.
//   - Changes of names (create, link, rename, unlink, mkdir, rmdir, symlink) form one ordered journal. So do
//     truncations that cut off safe data. fsync of a file or a folder makes the journal safe up to its last change of
//     that file or folder. fdatasync makes it safe up to the creation or truncation of that file. So fsync of a file
//     also saves its name, and all earlier changes of any name. A rename after it needs an fsync of the folder.
//   - Modes, owners and times are safe at once.
//
// Some failures cannot show here:
//
//   - bugs that need a part of the unsynced writes to survive, such as torn pages and reordered writes;
//   - bugs of programs that need less than ext4's order of names;
//   - failures of disks that acknowledge a flush without doing it.
//
// fsync is passed on to the file system of the store, so it costs what it costs there.
//
// The first such file system is LazyFS (https://github.com/dsrhaslab/lazyfs). "All File Systems Are Not Created
// Equal", Pillai et al., OSDI 2014, describes the promises of file systems and their use by programs.
//
// # A full disk
//
// Some operations fail with ENOSPC: a write beyond the end of a file, a truncation to a larger size, fallocate, and
// the creation of a name. Reads, writes within a file's size, renames and deletions work. A deletion frees no space.
package disk
