package tower

// unreached is the distance of a cell that no way leads to.
const unreached = -1

// distances says for every cell how many moves it is away.
type distances [cells]int

// survey measures from start over everything that can be walked on without
// a cost. Doors, monsters, stairs and places get a distance, too, but
// nothing is measured through them.
func (f *floor) survey(start cell) *distances {
	var d distances
	for c := range d {
		d[c] = unreached
	}
	d[start] = 0
	queue := append(make([]cell, 0, cells), start)
	for i := 0; i < len(queue); i++ {
		c := queue[i]
		for way := range direction(directions) {
			next := c.beside(way)
			if d[next] != unreached || f.grid[next] == tileWall {
				continue
			}
			d[next] = d[c] + 1
			if f.free(next) {
				queue = append(queue, next)
			}
		}
	}
	return &d
}

// free says whether a step onto c costs nothing and leads nowhere else.
func (f *floor) free(c cell) bool { return f.grid[c] == tileGround || f.grid[c].treasure() }

// toward picks the first move of a shortest way from here to goal. It keeps
// to the direction before where it can, as people do.
func (f *floor) toward(here, goal cell, before direction) direction {
	d := f.survey(goal)
	length := func(way direction) int {
		next := here.beside(way)
		if d[next] == unreached || next != goal && !f.free(next) {
			return cells
		}
		return d[next]
	}
	best := before
	for i := range direction(directions) {
		if way := (before + i) % directions; length(way) < length(best) {
			best = way
		}
	}
	return best
}

// nearest picks the reached cell closest to where d was measured from among
// those that suit; false where there is none.
func (d *distances) nearest(suits func(cell) bool) (cell, bool) {
	best, found := cell(0), false
	for c := range cell(cells) {
		if d[c] > 0 && (!found || d[c] < d[best]) && suits(c) {
			best, found = c, true
		}
	}
	return best, found
}
