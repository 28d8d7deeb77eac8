import { Overview } from '@/features/telemetry/overview'

export default function Page() {
  return <Overview />
}
