//go:build race

package lab

// raceDetector tells that programs take several times the memory.
const raceDetector = true
