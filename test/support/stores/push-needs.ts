// What use cases that push need beside a metadata store: settings that allow missing content, and a disk with space.
export const pushNeeds = {
  disk: { isLow: () => false, isVeryLow: () => false },
  settings: {
    missingContent: 'allow',
    additionalMediaTypes: [],
    tagsPerPushMax: 10,
    undeleteMs: 0,
    manifestBytesMax: 1_000_000,
    jsonDepthMax: 32,
    descriptorsMax: 100,
    annotationsMax: 10,
    annotationBytesMax: 1000,
    referrersBytesMax: 1_000_000,
    tagHistoryMs: 3_600_000,
  },
} as const
