import { blobCases } from './blob-cases.ts'
import { testOnBothMounts } from './both-mounts.ts'

testOnBothMounts(blobCases)
