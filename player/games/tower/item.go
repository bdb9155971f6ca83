package tower

// item is a tool that is carried in the bag until it is used. Replays hold
// these numbers as the parameter of "use", saved states as the order of the
// bag: they must not change.
type item uint8

const (
	// pickaxe breaks the wall in front of the hero, except the outer wall.
	pickaxe item = 0
	// bomb removes the monster in front of the hero, except the guardian.
	bomb item = 1
	// scroll returns the hero to where the floor is entered.
	scroll item = 2
	// wings carry the hero to any floor visited before.
	wings item = 3
	// elixir heals in proportion to the hero's strength.
	elixir item = 4
	// ration is what a rest costs.
	ration item = 5
)

// items is the number of items.
const items = 6

var itemNames = [items]string{"pickaxe", "bomb", "scroll", "wings", "elixir", "ration"}
