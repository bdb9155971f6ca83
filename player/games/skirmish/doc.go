// Package skirmish is a small real-time strategy game, all of it integer
// arithmetic: the sample simulation of lockstep recordings. Two to eight
// players gather gold and wood, build, train and fight, each against all
// others, until one is left. [Match] plays whole matches among bots.
//
// # Rules
//
// A tick is 1/20 s at the default rate. Lengths are in tiles, times in
// ticks; a strike takes its damage plus 0 to 2.
//
//	unit     code  hp   damage  reach  recharge  speed  price      ticks  beats
//	worker   1     40   3       1      20        1/10   50 gold    200
//	soldier  2     100  10      1      20        1/10   60 gold    240    cavalry
//	archer   3     55   8       5      26        1/9    40 g, 30 w 260    soldier
//	cavalry  4     120  12      1      22        1/6    90 g, 20 w 320    archer
//
//	building code  hp    price        ticks  trains   room
//	hall     -     1200  -            -      worker   12
//	barracks 2     600   120 wood     500    soldier  8
//	archery  3     500   40 g, 100 w  500    archer   8
//	stable   4     550   60 g, 140 w  600    cavalry  8
//
// The economy:
//
//   - Each player starts with a hall, four workers, 200 gold and 160 wood.
//   - A worker gathers 10 in 40 ticks and brings it to the nearest finished
//     building of its player. A mine holds 2500 gold, a grove 350 wood. New
//     workers start gathering by themselves.
//   - A site is built by any number of workers, each adding a tick of work;
//     a damaged building is mended in the same way, free of charge.
//   - A building covers three by three tiles and keeps one tile of free
//     ground around it, so nothing can be walled in.
//   - Units in training count as population: at most the room of the
//     finished buildings, and never more than 60.
//
// The fight:
//
//   - Who beats whom (last column) deals half as much again. Walls take 2
//     off each strike. The dead fall at the end of the tick.
//   - Fighters that are idle or on an attack-move take on foes within 7
//     tiles. Workers never do.
//   - Who has no building left is defeated. Who is defeated or surrenders
//     loses everything at the end of the tick. The last one wins; if the
//     last ones go in the same tick, nobody does.
//
// # Commands
//
// Every step has five integer parameters: player, unit, tx, ty, target; tx
// and ty are Q16.16 tiles. What an operation does not name is not looked at.
//
//	code  name         uses
//	1     move         unit, tx, ty: walks there; a worker sent onto a deposit gathers, onto an own building delivers, builds or mends
//	2     attack       unit, target: the id of a foe's unit or building
//	3     stop         unit: halts, or takes the last unit out of a building's queue and pays it back
//	4     attack-move  unit, tx, ty: walks there, fighting on the way
//	5     build        unit, tx, ty (the middle), target: a building's code
//	6     train        unit (a building), target: a unit's code; tx, ty other than 0, 0 is the new rally point
//	7     surrender    nothing but the player
//
// A step with another code, another number of parameters or anything but
// 64-bit integers fails. A command that cannot be carried out is ignored
// with a [Refusal] and changes nothing.
//
// # Maps
//
// A map is named by style and size: plains-N, woods-N, canyon-N, N tiles a
// side from 64 to 200. Ground, starts and deposits follow from the seed, the
// name and the number of players. All free ground is connected, always.
//
// # State and hash
//
// Everything that decides how a match goes on is in one struct (state.go):
//
//	part of the hash  what it covers
//	world             seed, map, ground, tick, outcome, deposits, buildings
//	units             units with their orders and routes, arrows
//	economy           players: standing, gold, wood
//	random            the generator and the last id given
//
// A session hashes the four parts at 4 bytes each, or asks for 0 to 32 bytes
// without parts. [Game.Save] writes, every number as the shortest unsigned
// varint unless a width is given:
//
//	bytes  what
//	4      "SKIR"
//	1      version, 1
//	       seed; map name (length, bytes)
//	       players: count; per player number, standing, gold, wood
//	       next tick; last id; route cursor; random state; over; winner's seat + 1 or 0
//	       deposits: count; each id, left
//	       buildings: count; each id, owner's seat, kind, x, y, hp, built, queued, trained, rallies, rally x, y if it does
//	       units: count; each id, owner's seat, kind, x, y, hp, recharge, order, goal x, y, target, foe, cargo, load, work, source,
//	       route: length, its tiles, next, asked, rest, nearest, stall, tries
//	       arrows: count; each x, y, target, damage
//	8      digest of all before, little-endian
//
// [Game.Load] takes only what a match under these rules can hold, and only
// in this one encoding.
//
// # Determinism
//
// The same start and steps give the same state on every machine because:
//
//   - there is no floating point; lengths use an exact integer root;
//   - nothing iterates over a map, and lists are in the order of creation;
//   - ties are broken by id, or by tile for routes;
//   - the only random source is a splitmix64 generator in the state;
//   - the board, the cells and the search's memory follow from the state
//     alone, and are never a reason for a different result;
//   - the package has no clock, no file, no goroutine and no variable that
//     is ever written.
//
// A tick runs: steps; routes for those who asked, within a fixed effort;
// units act in order of id; crowding units part; arrows fly; the dead are
// removed; training goes on; the outcome is judged.
//
// A change of any of this is a new [Build], and shows in the golden test.
package skirmish
