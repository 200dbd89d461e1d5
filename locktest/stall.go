package locktest

// stallCases are cases of clients that are cut off, once more: what they send meanwhile is not lost, but arrives when they are back.
var stallCases = []testCase{
	stalled("G2_HolderKnowsFirst", holderKnowsFirst),
	stalled("G5_CancelWhileDisconnected", cancelWhileDisconnected),
	stalled("G5_CancelWhileWaitingDisconnected", cancelWhileWaitingDisconnected),
	stalled("G6_CutDuringAcquireAndRelease", cutDuringAcquireAndRelease),
	stalled("G6_GiveUpDuringCut", giveUpDuringCut),
	stalled("G10_PendingWhileCut", pendingWhileCut),
	stalled("G10_LateReleaseSparesTheSuccessor", lateReleaseSparesTheSuccessor),
	stalled("G11_CloseWhileCut", closeWhileCut),
	stalled("G16_SurvivesACut", dataSurvivesACut),
	stalled("G16_NeverAfterTheEnd", dataAfterTheEnd),
	stalled("G18_NothingHalfWhileCut", nothingHalfWhileCut),
}

// stalled is a case whose clients are stalled where they are cut off otherwise.
func stalled(name string, run func(e *env)) testCase {
	return testCase{name + "_Stalled", func(e *env) {
		e.stalls = true
		run(e)
	}}
}
