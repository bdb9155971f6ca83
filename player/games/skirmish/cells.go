package skirmish

// cellTiles is the side of a cell.
const cellTiles = 4

// cells sorts the units by place, so that neighbours are found without
// looking at everyone. They are filled at each tick's start.
type cells struct {
	side int
	// head is the first unit of a cell, after the next one of each unit;
	// -1 ends a list.
	head, after []int16
}

func (f fixed) cell() int { return int(f >> 16 / cellTiles) }

func (c *cells) fill(size int, units []unit) {
	c.side = (size + cellTiles - 1) / cellTiles
	if len(c.head) != c.side*c.side {
		c.head = make([]int16, c.side*c.side)
	}
	for i := range c.head {
		c.head[i] = -1
	}
	if cap(c.after) < len(units) {
		c.after = make([]int16, len(units), 2*len(units))
	}
	c.after = c.after[:len(units)]
	for i := len(units) - 1; i >= 0; i-- { // backwards: lists run forwards
		cell := units[i].at.y.cell()*c.side + units[i].at.x.cell()
		c.after[i] = c.head[cell]
		c.head[cell] = int16(i)
	}
}

// cellWalk goes through the cells of a square, row by row.
type cellWalk struct {
	cells                  *cells
	x, y, left, right, end int
}

// within walks over all cells that are less than radius away from p.
func (c *cells) within(p point, radius fixed) cellWalk {
	w := cellWalk{cells: c}
	w.left = max(0, (p.x - radius).cell())
	w.right = min(c.side-1, (p.x + radius).cell())
	w.y = max(0, (p.y - radius).cell())
	w.end = min(c.side-1, (p.y + radius).cell())
	w.x = w.left - 1
	return w
}

func (w *cellWalk) next() bool {
	w.x++
	if w.x > w.right {
		w.x = w.left
		w.y++
	}
	return w.y <= w.end
}

// first is the first unit of the present cell, or -1.
func (w *cellWalk) first() int16 { return w.cells.head[w.y*w.cells.side+w.x] }

// spread pushes apart units that stand in each other's way. Gatherers pass
// through one another.
func (g *Game) spread() {
	for i := range g.units {
		u := &g.units[i]
		if u.gathers() {
			continue
		}
		for it := g.cells.within(u.at, bodyDistance); it.next(); {
			for j := it.first(); j >= 0; j = g.cells.after[j] {
				if int(j) > i {
					g.push(u, &g.units[j])
				}
			}
		}
	}
}

func (u *unit) gathers() bool { return u.order == gathering || u.order == delivering }

// push moves two units that are too close a quarter of the overlap apart.
func (g *Game) push(u, v *unit) {
	dx, dy := v.at.x-u.at.x, v.at.y-u.at.y
	if abs(int(dx)) >= int(bodyDistance) || abs(int(dy)) >= int(bodyDistance) || v.gathers() {
		return
	}
	distance := length(dx, dy)
	if distance >= bodyDistance {
		return
	}
	if distance == 0 {
		dx, distance = 1, 1
	}
	by := (bodyDistance - distance) / 4
	px, py := dx*by/distance, dy*by/distance
	g.shift(u, -px, -py)
	g.shift(v, px, py)
}
