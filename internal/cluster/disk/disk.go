// Package disk is a file system that can lose what was not synced, fill up, and
// be slow. It lies under the data of one node of a cluster and passes everything
// on to a folder beside them, its store, which always holds the present state.
//
// It is served over FUSE by a process of its own, which is this program started
// once more with the argument cluster.FaultFSCommand: a program that opens files
// of a file system which it serves itself can wait for itself for ever.
//
// # What is lost
//
// Lose takes the file system to the state that a machine may have after its
// power was cut, by the rules of ext4 with data=ordered, each in the strictest
// way that they allow. What was there when the file system was mounted, or at
// the last Sync, is safe.
//
//   - The content of a file, and its size, are safe once fsync or fdatasync of
//     that file has returned, or a write to it by O_SYNC or O_DSYNC. All later
//     writes are lost, whole, and a file that was never synced is empty.
//     sync_file_range, sync and syncfs make nothing safe. Writes through a shared
//     memory map arrive when the kernel writes them back, at msync, munmap or the
//     end of the process, and are then as any.
//   - Changes of names (create, link, rename, unlink, mkdir, rmdir, symlink) and
//     a truncation that cuts off safe data form one journal, in their order. fsync
//     of a file or a folder makes the journal safe up to the last change of that
//     file or folder; fdatasync up to the creation or truncation of that file. So
//     fsync of a file saves its own name too, and all that happened to any name
//     before it; a rename behind it needs an fsync of the folder.
//   - Modes, owners and times are safe at once.
//
// This cannot show bugs that need a part of the unsynced writes to survive, such
// as torn pages and writes that reach the disk out of their order; those of
// programs that rely on less than ext4's order of names; and what a disk loses
// that acknowledges a flush and does not do it. fsync is passed on to the file
// system of the store, so it costs what it costs there.
//
// The first of such file systems for this purpose is LazyFS
// (https://github.com/dsrhaslab/lazyfs); what file systems promise, and what
// programs make of it, is in "All File Systems Are Not Created Equal", Pillai et
// al., OSDI 2014.
//
// # A full disk
//
// A write beyond the end of a file, a truncation to a larger size, fallocate and
// whatever makes a name fail with ENOSPC. Reads, writes within a file's size,
// renames and deletions work. A deletion makes no room.
package disk
