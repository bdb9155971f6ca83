package tower

// side is the length of a floor's edge, cells how many cells it has. The
// outermost ring is always wall, so a step never leaves the grid.
const (
	side  = 13
	cells = side * side
)

// cell is a place on a floor, row by row from the upper left.
type cell uint8

func at(x, y int) cell { return cell(y*side + x) }

func (c cell) x() int { return int(c) % side }
func (c cell) y() int { return int(c) / side }

// rim says whether c belongs to the outer wall.
func (c cell) rim() bool {
	x, y := c.x(), c.y()
	return x == 0 || y == 0 || x == side-1 || y == side-1
}

// beside gives the neighbour in direction d of a cell that is not on the
// rim.
func (c cell) beside(d direction) cell { return cell(int(c) + deltas[d]) }

// direction is where a move goes; saved states hold these numbers, which
// must not change.
type direction uint8

const (
	up    direction = 0
	down  direction = 1
	left  direction = 2
	right direction = 3
)

const directions = 4

var (
	deltas         = [directions]int{-side, side, -1, 1}
	directionNames = [directions]string{"up", "down", "left", "right"}
)

// floor is one storey of the tower. Entry is where the hero arrives from
// below, exit the stairs up or, on the top floor, the crown.
type floor struct {
	grid        [cells]tile
	entry, exit cell
}

// arrival is where a hero who comes down the stairs stands.
func (f *floor) arrival(descending bool) cell {
	if descending {
		return f.exit
	}
	return f.entry
}
