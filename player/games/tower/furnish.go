package tower

// stock is one line of what a floor is furnished with: always copies, and
// with the given percentage one more.
type stock struct {
	thing   tile
	always  int
	percent int
}

var larder = [...]stock{
	{tileRedGem, 1, 30},
	{tileBlueGem, 1, 30},
	{tilePotion, 1, 70},
	{tileBigFlask, 0, 35},
	{tileKey + tile(yellow), 0, 50},
	{tileTool + tile(ration), 0, 45},
	{tileTool + tile(pickaxe), 0, 20},
	{tileTool + tile(bomb), 0, 20},
	{tileTool + tile(scroll), 0, 25},
	{tileTool + tile(wings), 0, 25},
	{tileTool + tile(elixir), 0, 12},
}

// furnish fills the rooms.
func (b *builder) furnish() {
	b.places()
	for _, s := range larder {
		for range s.always {
			b.drop(b.anyRoom(), s.thing)
		}
		if b.random.percent(s.percent) {
			b.drop(b.anyRoom(), s.thing)
		}
	}
	b.riches()
	for range 4 + b.random.below(5) {
		b.drop(b.anyRoom(), b.monster())
	}
}

func (b *builder) anyRoom() *room { return &b.rooms[b.random.below(len(b.rooms))] }

// riches rewards costly doors, and now and then gives equipment.
func (b *builder) riches() {
	for i := range b.rooms {
		if b.rooms[i].rich {
			b.drop(&b.rooms[i], tileRedGem)
			b.drop(&b.rooms[i], tileBlueGem)
			b.drop(&b.rooms[i], tileBigFlask)
		}
	}
	switch b.level % 4 {
	case 1:
		b.drop(&b.rooms[len(b.rooms)-1], tileSword)
	case 3:
		b.drop(&b.rooms[len(b.rooms)-1], tileShield)
	}
}

// places puts up what is opened with a command; which, goes by the level.
func (b *builder) places() {
	switch b.level % 3 {
	case 0:
		b.settle(tileAltar)
	case 1:
		b.settle(tileShop)
	case 2:
		b.settle(tileTrader)
	}
	if b.random.percent(50) {
		b.settle(tileChest)
	}
}

// settle puts a place into a room that has none, away from every gate and
// both ends of the floor, so that it bars no way.
func (b *builder) settle(t tile) {
	r := b.anyRoom()
	if r.place {
		return
	}
	c := at(r.x0+b.random.below(r.x1-r.x0+1), r.y0+b.random.below(r.y1-r.y0+1))
	if b.floor.grid[c] == tileGround && !b.crowded(c) {
		b.floor.grid[c] = t
		r.place = true
	}
}

// crowded says whether something solid at c would be in the way.
func (b *builder) crowded(c cell) bool {
	if c == b.floor.entry || neighbours(c, b.floor.entry) || neighbours(c, b.floor.exit) {
		return true
	}
	for _, g := range b.gates {
		if neighbours(c, g) {
			return true
		}
	}
	return false
}
