import { OperationId } from '@floe/domain'
import { z } from 'zod'

export const OperationCancelInput = z.object({ operationId: OperationId })
