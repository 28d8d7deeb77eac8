import { Overview } from '@/features/instance-page/overview'

export default function Page() {
  return <Overview />
}
