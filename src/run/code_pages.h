#pragma once
// How much of the program's own files, and of its libraries', counts as this process's memory: as little as it runs.

namespace snug {

// Gives back the resident pages of code, of which most has read, resolved, planned or prepared and is not run again; what is
// run is mapped anew as it is reached, at most 64 KiB at a time. Left to itself Linux from 6.18 on maps as much as lies
// together in the page cache, up to 2 MiB: then it depends on how a file was written or read how much memory a run takes.
// Code that was changed, as by a debugger's breakpoints, is left alone.
void shrink_code_pages();

}  // namespace snug
