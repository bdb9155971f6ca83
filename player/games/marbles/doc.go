// Package marbles is a game so small that it fits on a page in any language:
// sixteen marbles roll on a round-the-edges board and are pushed by the
// players. It exists once in Go, here, and again in C, Python and C# beside
// the hosts of simulations (player/process/samples, player/wasm/samples), which
// all give the same hashes.
//
// # Rules
//
// All numbers are integers of 64 bits; x and y are kept in 0 to 65535, and a
// cell of the board is 4096 wide.
//
//   - The seed is the first state of the random source; one draw is
//     state = state × 6364136223846793005 + 1442695040888963407, and its value
//     is state >> 33.
//   - At the start every marble in turn gets x and y, one draw each, modulo
//     65536; all stand still.
//   - Command 1, push (player, marble, dx, dy), adds dx and dy to a marble's
//     speed. Command 2, stop (player, marble), makes it stand still. A marble
//     that does not exist, or a push of more than 64 in either direction, is
//     ignored. Other codes, other numbers of parameters and other kinds than
//     integers fail.
//   - At the end of a tick every marble moves by its speed. Every 16th tick
//     (its number modulo 16 is 0) each speed v loses v >> 3. Then of every two
//     marbles in one cell, in order (0 and 1, 0 and 2, … 14 and 15), the
//     speeds are exchanged. Last, one draw nudges marble value % 16: its speed
//     in x grows by (value >> 8) % 15 − 7.
//
// The hash is FNV-1a with 64 bits over the random state and then x, y and both
// speeds of each marble, each as eight bytes, highest first.
package marbles
