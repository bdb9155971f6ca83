package format

import (
	"errors"
	"fmt"
	"testing"
)

func TestWarningNumbersStayTheSame(t *testing.T) {
	tests := []struct {
		code WarningCode
		want int
	}{
		{WarnStepFailed, 72}, {WarnNoPassive, 73}, {WarnUnsupported, 148}, {WarnGrowth, 149}, {WarnFull, 150},
		{WarnBoolean, 151}, {WarnBigInt, 152}, {WarnTooManyParams, 153}, {WarnCodeCut, 154}, {WarnExpiredRead, 155},
		{WarnExpired, 156}, {WarnUnknownCode, 157}, {WarnCollectionOpen, 159}, {WarnCollectionClosed, 160},
		{WarnUnrecorded, 161}, {WarnUnknownDetail, 162}, {WarnCodeTaken, 163}, {WarnOutOfRange, 179}, {WarnPassiveSkipped, 194},
	}
	for _, tt := range tests {
		if int(tt.code) != tt.want || warningTexts[tt.code] == "" {
			t.Errorf("code %d, want %d, with a sentence", int(tt.code), tt.want)
		}
	}
	if len(tests) != len(warningTexts) {
		t.Errorf("%d codes are tested of %d", len(tests), len(warningTexts))
	}
}

func TestWarningText(t *testing.T) {
	tests := []struct {
		w    Warning
		want string
	}{
		{Warning{Code: WarnUnsupported, Step: 3, Param: 2}, "warning 148: the value is of no parameter type and was dropped (step 3, parameter 2)"},
		{Warning{Code: WarnGrowth, Step: NoStep, Detail: "command area"}, "warning 149: a growth multiplier must be above 1; 2 is used: command area"},
		{Warning{Code: WarnOutOfRange, Step: -1}, "warning 179: the index is out of range; nothing changed (step -1)"},
		{Warning{Code: WarnOutOfRange, Step: 4}, "warning 179: the index is out of range; nothing changed (step 4)"},
		{Warning{Code: WarnCodeCut, Step: 0, Command: 300}, "warning 154: the command code does not fit 8 bits and was cut (step 0) (code 300)"},
		{Warning{Code: WarnStepFailed, Step: 1, Command: 7, Detail: "finalize"}, "error 72: the step failed (step 1) (code 7): finalize"},
		{Warning{Code: WarnPassiveSkipped, Step: 5, Command: 9, After: 8}, "warning 194: the passive step was not taken during the active step and was skipped (step 5) (passive code 9 after active code 8)"},
		{Warning{Code: 1, Step: NoStep}, "warning 1: unknown warning"},
	}
	for _, tt := range tests {
		if got := tt.w.String(); got != tt.want || tt.w.Error() != got {
			t.Errorf("prints %q, want %q", got, tt.want)
		}
	}
}

func TestWarningIsMatchedAsAnError(t *testing.T) {
	err := fmt.Errorf("session 5: %w", Warning{Code: WarnFull, Step: 2})
	var w Warning
	if !errors.Is(err, WarnFull) || errors.Is(err, WarnBigInt) || !errors.As(err, &w) || w.Step != 2 {
		t.Errorf("%v does not match by its code alone", err)
	}
	if !WarnStepFailed.Severe() || !WarnNoPassive.Severe() || WarnFull.Severe() {
		t.Error("errors and warnings are not told apart")
	}
}
