// The program `snug`: hands its arguments to the command line and returns its exit code.

#include "cli/cli.h"

int main(int argc, char** argv) { return snug::cli::run(argc, argv); }
