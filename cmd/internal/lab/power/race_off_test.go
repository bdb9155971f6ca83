//go:build !race

package power

// raceDetector tells that a story takes several times as long.
const raceDetector = false
